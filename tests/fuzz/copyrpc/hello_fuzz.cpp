// Greetings of copyrpc: bytes, and greetings with some changed fields. An accepted greeting is within the limits, and
// means the same once it is written again. A valid one is accepted.
#include <algorithm>
#include <bit>

#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/send_ledger.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using namespace cairn::copyrpc;
using test::require;

std::span<const std::uint8_t> bytes_of(const RawHello& raw) {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

Hello sound(test::Input& input) {
    Hello hello;
    hello.ring_bytes = RingShape::kLeastBytes << (input.byte() % 9U);
    hello.receives = static_cast<std::uint16_t>(4 + input.take<std::uint16_t>() % 4093U);
    hello.address = input.take<std::uint64_t>();
    hello.rkey = Rkey{input.take<std::uint32_t>()};
    hello.longest = input.take<std::uint32_t>();
    hello.flow = static_cast<Flow>(input.byte() % 2U);
    hello.word = Rkey{input.take<std::uint32_t>()};
    return hello;
}

// Puts a number near its limits into a field, or changes any byte.
void spoil(RawHello& raw, test::Input& input) {
    const std::uint8_t field = input.byte();
    const std::uint8_t value = input.byte();
    switch (field % 6U) {
        case 0:
            raw.receives.set(value % 8U);
            break;
        case 1:
            raw.receives.set(static_cast<std::uint16_t>(4088 + value % 16U));
            break;
        case 2:
            raw.ring_log2 = value % 34U;
            break;
        case 3:
            raw.flow = value % 4U;
            break;
        default:
            reinterpret_cast<std::uint8_t*>(&raw)[field % sizeof(raw)] = value;
            break;
    }
}

void check(std::span<const std::uint8_t> said) {
    const std::optional<Hello> hello = Hello::parse(said);
    require(hello == Hello::parse(said.first(std::min(said.size(), sizeof(RawHello)))));
    if (!hello) {
        return;
    }
    require(said.size() >= sizeof(RawHello));
    require(std::has_single_bit(hello->ring_bytes) && hello->ring_bytes >= 4096 && hello->ring_bytes <= 1U << 20U);
    require(hello->receives >= 4 && hello->receives <= 4096);
    require(hello->flow == Flow::Credit || hello->flow == Flow::Read);
    RawHello again;
    hello->emit(again);
    RawHello given;
    std::memcpy(&given, said.data(), sizeof(given));
    given.spare = {};
    require(std::memcmp(&again, &given, sizeof(given)) == 0);
    // A session can be made of it.
    const RingShape ring(hello->ring_bytes / kBlockBytes);
    SendLedger(ring, ring, hello->receives, hello->flow).check();
}

}  // namespace

// A byte says how much of a greeting is changed; 0xff means that all bytes are the input's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    const std::uint8_t changes = input.byte();
    if (changes >= 0xf0) {
        check(input.bytes(size));
        return 0;
    }
    const Hello hello = sound(input);
    RawHello raw;
    hello.emit(raw);
    require(Hello::parse(bytes_of(raw)) == hello);
    for (std::uint8_t left = changes % 4U; left > 0; --left) {
        spoil(raw, input);
    }
    std::vector<std::uint8_t> said(bytes_of(raw).begin(), bytes_of(raw).end());
    const std::vector<std::uint8_t> more = input.bytes(8);
    said.insert(said.end(), more.begin(), more.end());
    for (std::size_t bytes = 0; bytes <= said.size(); ++bytes) {
        check(std::vector<std::uint8_t>(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(bytes)));
    }
    return 0;
}
