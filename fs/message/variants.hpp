// Messages of several kinds: a variant's index, and then its alternative.
#pragma once

#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "fs/message/fields.hpp"

namespace cairn::fs {

template <class Variant>
void write_alternative(FieldWriter& out, const Variant& variant) {
    std::visit([&](const auto& fields) { std::remove_cvref_t<decltype(fields)>::fields(out, fields); }, variant);
}

// Reads a message. Returns false if there is no such alternative, or these bytes are not exactly its fields.
template <class Variant>
[[nodiscard]] bool read_alternative(FieldReader& in, std::size_t kind, Variant& variant) {
    using Read = bool (*)(FieldReader&, Variant&);
    constexpr auto reads = []<std::size_t... kEach>(std::index_sequence<kEach...> /*unused*/) {
        return std::array<Read, sizeof...(kEach)>{[](FieldReader& from, Variant& to) {
            auto& fields = to.template emplace<kEach>();
            std::variant_alternative_t<kEach, Variant>::fields(from, fields);
            return from.is_at_end();
        }...};
    }
    (std::make_index_sequence<std::variant_size_v<Variant>>{});
    return kind < reads.size() && reads[kind](in, variant);
}

}  // namespace cairn::fs
