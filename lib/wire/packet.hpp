// A RoCEv2 packet as a value: everything between the UDP header and the ICRC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include "lib/base/assert.hpp"
#include "lib/wire/bth.hpp"
#include "lib/wire/icrc.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::wire {

// Holds a known opcode, exactly the extension headers of that opcode, and a payload only if the opcode carries one. The
// pad follows from the payload. The packet does not judge its ICRC, nor if it fits a queue pair, a path MTU and earlier
// packets. The payload is a view of bytes that belong to others.
class Packet {
public:
    Packet() noexcept : Packet(Service::Rc, Operation::SendOnly) {}
    // Makes a packet with all fields zero and an empty payload. The service has the operation (asserted).
    Packet(Service service, Operation operation) noexcept;

    // Parses a packet. `udp_payload` is BTH ... ICRC. Reserved bits and the contents of the pad are ignored.
    [[nodiscard]] static Parsed<Packet> parse(std::span<const std::uint8_t> udp_payload) noexcept;
    // As parse(), into an existing packet. After a reason, the packet must be read again before it is used.
    [[nodiscard]] std::optional<Drop> read(std::span<const std::uint8_t> udp_payload) noexcept;

    // Writes every bit of BTH and extension headers to the front of `out`, which must hold them. Returns their size.
    // The caller adds the payload, pad_bytes() of zeros and the ICRC.
    [[nodiscard]] std::size_t emit(std::span<std::uint8_t> out) const noexcept;

    [[nodiscard]] const OpcodeTraits& traits() const noexcept { return *traits_; }
    [[nodiscard]] const Bth& bth() const noexcept { return bth_; }
    // Takes all of `bth` except opcode and pad count, which belong to the packet.
    void set_bth(const Bth& bth) noexcept;

    // Returns a header, which the opcode has (asserted).
    template <class Header>
    [[nodiscard]] const Header& get() const noexcept {
        CAIRN_ASSERT(traits_->headers.has<Header>());
        return std::get<Header>(headers_);
    }
    template <class Header>
    void set(const Header& header) noexcept {
        CAIRN_ASSERT(traits_->headers.has<Header>());
        std::get<Header>(headers_) = header;
    }

    [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept { return payload_; }
    // Sets the payload. The opcode carries one, or `payload` is empty (asserted).
    void set_payload(std::span<const std::uint8_t> payload) noexcept;

    [[nodiscard]] std::size_t pad_bytes() const noexcept { return bth_.pad_count; }
    // Returns the size from BTH to ICRC.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return traits_->header_bytes + payload_.size() + pad_bytes() + kIcrcBytes;
    }

    // Payloads are compared by their bytes.
    friend bool operator==(const Packet& one, const Packet& other) noexcept;

private:
    // Reads the opcode's extension headers from the front of `rest`, and leaves the following bytes there. Returns a
    // reason if it cannot.
    [[nodiscard]] std::optional<Drop> take_headers(std::span<const std::uint8_t>& rest) noexcept;

    const OpcodeTraits* traits_;
    Bth bth_{};
    HeaderSet::Values headers_{};  // headers that the opcode lacks have any value
    std::span<const std::uint8_t> payload_{};
};

}  // namespace cairn::wire
