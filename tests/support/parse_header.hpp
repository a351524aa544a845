// Parses one header into a value or a reason; the headers of a Packet are judged one by one.
#pragma once

#include "lib/wire/headers.hpp"

namespace cairn::test {

template <class Header>
[[nodiscard]] wire::Parsed<Header> parse_header(std::span<const std::uint8_t> bytes) noexcept {
    Header header{};
    const std::optional<wire::Drop> reason = wire::read_header(bytes, header);
    return reason ? wire::Parsed<Header>(*reason) : wire::Parsed<Header>(header);
}

}  // namespace cairn::test
