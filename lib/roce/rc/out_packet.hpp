// A packet on its way out: its headers as bytes of the wire, and views of its payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "lib/base/assert.hpp"
#include "lib/roce/qp/scatter.hpp"
#include "lib/roce/rc/limits.hpp"
#include "lib/wire/packet.hpp"

namespace cairn::roce::rc {

// BTH and extension headers, the pieces of the payload, `pad_bytes` of zeros; the port adds the ICRC. The pieces are
// views of registered memory or of the queue pair's own. The packet is sent or copied before the next call to the
// engine.
struct OutPacket {
    std::array<std::uint8_t, kMaxHeaderBytes> header;
    std::uint8_t* elsewhere = nullptr;  // a buffer of the port that gets the headers instead; at least kMaxHeaderBytes
    Pieces payload;
    std::uint32_t payload_bytes = 0;
    std::uint8_t header_bytes = 0;
    std::uint8_t pad_bytes = 0;
    bool again = false;  // a request packet was sent before

    [[nodiscard]] std::uint8_t* header_place() noexcept { return elsewhere != nullptr ? elsewhere : header.data(); }
    [[nodiscard]] std::span<const std::uint8_t> headers() const noexcept {
        return {elsewhere != nullptr ? elsewhere : header.data(), header_bytes};
    }
    // Returns the size from BTH to ICRC.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return header_bytes + payload_bytes + pad_bytes + wire::kIcrcBytes;
    }
};

// Writes the headers of a packet whose payload_bytes are set. Sets opcode and pad of `bth`. Every header that the
// operation has is given (asserted); headers that it lacks are left out.
template <class... Headers>
void write_headers(OutPacket& out, wire::Bth&& bth, wire::Service service, wire::Operation operation,
                   const Headers&... headers) noexcept {
    const wire::OpcodeTraits& traits = *wire::find_opcode(wire::opcode_of(service, operation));
    bth.opcode = traits.opcode();
    out.pad_bytes = wire::pad_for(out.payload_bytes);
    bth.pad_count = out.pad_bytes;
    std::uint8_t* const place = out.header_place();
    emit_at(place, bth);
    std::uint8_t* at = place + wire::Bth::kBytes;
    const auto put = [&]<class Header>(const Header& header) noexcept {
        if (traits.headers.has<Header>()) {
            emit_at(at, header);
            at += Header::kBytes;
        }
    };
    (put(headers), ...);
    out.header_bytes = static_cast<std::uint8_t>(at - place);
    CAIRN_ASSERT(out.header_bytes == traits.header_bytes);
}

}  // namespace cairn::roce::rc
