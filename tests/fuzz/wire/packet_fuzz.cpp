// Bytes as a UDP payload: a refusal, or a packet that is emitted as the bytes it came from, reserved bits cleared.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "lib/wire/packet.hpp"

namespace {

using namespace cairn;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

// Clears the bits that a sender has to clear (IBTA vol. 1, 9.2, 9.3), by offsets of its own.
void clear_reserved_bits(std::vector<std::uint8_t>& datagram, const wire::Packet& packet) {
    datagram[4] &= 0xc0U;
    datagram[8] &= 0x80U;
    const wire::HeaderSet headers = packet.traits().headers;
    if (headers.has<wire::Xrceth>()) {
        datagram[12] = 0;
    }
    if (headers.has<wire::Deth>()) {
        datagram[12 + 4] = 0;
    }
    if (headers.has<wire::Feth>()) {
        std::fill_n(datagram.begin() + 12, 3, std::uint8_t{0});
        datagram[15] &= 0x3fU;
    }
    if (headers.has<wire::CnpReserved>()) {
        std::fill_n(datagram.begin() + 12, 16, std::uint8_t{0});
    }
    std::fill_n(datagram.end() - static_cast<std::ptrdiff_t>(wire::kIcrcBytes + packet.pad_bytes()), packet.pad_bytes(),
                std::uint8_t{0});
}

// Parses a copy that ends where its memory ends, so that the sanitizer sees reads beyond the end.
void check(std::span<const std::uint8_t> bytes) {
    std::vector<std::uint8_t> datagram(bytes.begin(), bytes.end());
    const auto parsed = wire::Packet::parse(datagram);
    if (!parsed.ok()) {
        require(parsed.reason() < wire::Drop::Count);
        return;
    }
    const wire::Packet& packet = parsed.value();
    require(packet.bytes() == datagram.size());
    std::vector<std::uint8_t> again(packet.bytes(), 0xa5);
    const std::size_t headers = packet.emit(again);
    const auto behind = again.begin() + static_cast<std::ptrdiff_t>(headers);
    const auto pad = std::copy(packet.payload().begin(), packet.payload().end(), behind);
    std::fill_n(pad, packet.pad_bytes(), std::uint8_t{0});
    std::copy(datagram.end() - wire::kIcrcBytes, datagram.end(), again.end() - wire::kIcrcBytes);
    clear_reserved_bits(datagram, packet);
    require(again == datagram);
    require(wire::Packet::parse(again).value() == packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> bytes(data, size);
    check(bytes);
    // Parses again with properties that random bytes rarely have: header version 0, whole words, and no payload if none
    // is allowed.
    std::vector<std::uint8_t> likely(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(size % 4));
    if (likely.size() < wire::Bth::kBytes) {
        return 0;
    }
    likely[1] &= 0xf0U;
    const wire::OpcodeTraits* traits = wire::find_opcode(likely[0]);
    if (traits != nullptr && traits->payload == wire::Payload::None) {
        likely[1] &= 0xcfU;
        likely.resize(std::min(likely.size(), traits->header_bytes + wire::kIcrcBytes));
    }
    check(likely);
    return 0;
}
