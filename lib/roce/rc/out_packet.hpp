// A packet on its way out: headers as they stand on the wire, and where its payload lies.
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

// BTH and extension headers, then the payload's pieces, then `pad_bytes` of zeros; the ICRC is the port's. The
// pieces are views of registered memory or of the queue pair's own: to be sent or copied before the next call of any
// kind to the engine.
struct OutPacket {
    std::array<std::uint8_t, kMaxHeaderBytes> header;
    std::uint8_t* elsewhere = nullptr;  // a port's buffer, of kMaxHeaderBytes at least, to have the headers instead
    Pieces payload;
    std::uint32_t payload_bytes = 0;
    std::uint8_t header_bytes = 0;
    std::uint8_t pad_bytes = 0;
    bool again = false;  // a request packet that was sent before

    [[nodiscard]] std::uint8_t* header_place() noexcept { return elsewhere != nullptr ? elsewhere : header.data(); }
    [[nodiscard]] std::span<const std::uint8_t> headers() const noexcept {
        return {elsewhere != nullptr ? elsewhere : header.data(), header_bytes};
    }
    // BTH ... ICRC.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return header_bytes + payload_bytes + pad_bytes + wire::kIcrcBytes;
    }
};

// Writes the headers of a packet; payload_bytes is set already, opcode and pad of `bth` follow here. Values for headers
// that the operation lacks are left out; those it has are all given (asserted).
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
