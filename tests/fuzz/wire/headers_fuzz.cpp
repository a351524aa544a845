// Bytes as each extension header. The result is a refusal with the correct reason, or a value that is emitted as it
// came, and whose emission means the same.
#include <cstdlib>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "lib/wire/opcode.hpp"
#include "tests/support/parse_header.hpp"

namespace {

using namespace cairn;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

template <class Header>
constexpr bool kHasReserved = std::is_same_v<Header, wire::Deth> || std::is_same_v<Header, wire::Feth> ||
                              std::is_same_v<Header, wire::Xrceth> || std::is_same_v<Header, wire::CnpReserved>;

template <class Header>
void check(std::span<const std::uint8_t> input) {
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    const auto parsed = test::parse_header<Header>(bytes);
    if (bytes.size() < Header::kBytes) {
        require(!parsed.ok() && parsed.reason() == wire::Drop::Truncated);
        return;
    }
    if (!parsed.ok()) {
        require(std::is_same_v<Header, wire::Aeth> && parsed.reason() == wire::Drop::BadSyndrome);
        return;
    }
    std::vector<std::uint8_t> again(Header::kBytes, 0xa5);
    emit_at(again.data(), parsed.value());
    require(kHasReserved<Header> || std::memcmp(again.data(), bytes.data(), again.size()) == 0);
    require(test::parse_header<Header>(again).value() == parsed.value());
}

template <class... Headers>
void check_each(std::span<const std::uint8_t> bytes, const std::tuple<Headers...>&) {
    (check<Headers>(bytes), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check_each(std::span(data, size), wire::HeaderSet::Values{});
    return 0;
}
