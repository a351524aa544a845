#include "fs/message/requests.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kOperations = std::variant_size_v<Request>;

template <std::size_t kOperation>
bool read_as(FieldReader& in, Request& request) {
    auto& fields = request.emplace<kOperation>();
    std::variant_alternative_t<kOperation, Request>::fields(in, fields);
    return in.is_at_end();
}

using Read = bool (*)(FieldReader&, Request&);

template <std::size_t... kEach>
constexpr std::array<Read, kOperations> all_reads(std::index_sequence<kEach...> /*unused*/) {
    return {read_as<kEach>...};
}

constexpr std::array<Read, kOperations> kReads = all_reads(std::make_index_sequence<kOperations>{});

constexpr std::array<std::string_view, kOperations> kNames{"walk",   "create", "stat",     "open",    "close",  "read",
                                                           "write",  "extend", "reserve",  "setattr", "remove", "list",
                                                           "rename", "link",   "readlink", "statfs",  "sync"};

}  // namespace

std::uint32_t put_request(std::span<std::uint8_t> room, RequestHead head, const Request& request) {
    FieldWriter out(room);
    head.operation = static_cast<std::uint8_t>(request.index());
    RequestHead::fields(out, head);
    std::visit([&](const auto& fields) { std::remove_cvref_t<decltype(fields)>::fields(out, fields); }, request);
    return out.failed() ? 0 : out.bytes();
}

// mutants: fs-parse-request
std::optional<ParsedRequest> parse_request(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    std::optional<ParsedRequest> parsed(std::in_place);
    RequestHead::fields(in, parsed->head);
    if (in.failed() || parsed->head.version != RequestHead::kVersion || parsed->head.operation >= kOperations ||
        !kReads[parsed->head.operation](in, parsed->request)) {
        return std::nullopt;
    }
    return parsed;
}

std::string_view name_of(const Request& request) noexcept {
    return kNames[request.index()];
}

}  // namespace cairn::fs
