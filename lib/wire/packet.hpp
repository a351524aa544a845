// A RoCEv2 packet as a value: what stands between the UDP header and the ICRC.
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

// Holds a known opcode, exactly the extension headers that it has, and a payload only where it carries one; the
// pad follows from the payload. Whether this fits a queue pair, its path MTU and what came before is not judged
// here, nor is the ICRC. The payload is a view of somebody else's bytes.
class Packet {
public:
    Packet() noexcept : Packet(Service::Rc, Operation::SendOnly) {}
    // All fields zero, no payload. The service has the operation (asserted).
    Packet(Service service, Operation operation) noexcept;

    // `udp_payload` is BTH ... ICRC. Reserved bits and the pad's contents are ignored.
    [[nodiscard]] static Parsed<Packet> parse(std::span<const std::uint8_t> udp_payload) noexcept;

    // Writes every bit of BTH and extension headers to the front of `out`, which must hold them; returns how
    // many bytes they are. Payload, pad_bytes() of zeros and the ICRC belong behind them.
    [[nodiscard]] std::size_t emit(std::span<std::uint8_t> out) const noexcept;

    [[nodiscard]] const OpcodeTraits& traits() const noexcept { return *traits_; }
    [[nodiscard]] const Bth& bth() const noexcept { return bth_; }
    // Takes all of `bth` but opcode and pad count, which are the packet's own.
    void set_bth(const Bth& bth) noexcept;

    // The opcode has the header (asserted).
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
    // The opcode carries payload, or it is empty (asserted).
    void set_payload(std::span<const std::uint8_t> payload) noexcept;

    [[nodiscard]] std::size_t pad_bytes() const noexcept { return bth_.pad_count; }
    // BTH ... ICRC.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return traits_->header_bytes + payload_.size() + pad_bytes() + kIcrcBytes;
    }

    // Payloads are equal when their bytes are.
    friend bool operator==(const Packet& one, const Packet& other) noexcept;

private:
    explicit Packet(const OpcodeTraits& traits) noexcept : traits_(&traits) { bth_.opcode = traits.opcode(); }
    // Reads the opcode's extension headers from the front of `rest` and leaves what follows them; or a reason.
    [[nodiscard]] std::optional<Drop> take_headers(std::span<const std::uint8_t>& rest) noexcept;

    const OpcodeTraits* traits_;
    Bth bth_{};
    HeaderSet::Values headers_{};  // those that the opcode lacks stay as they were made
    std::span<const std::uint8_t> payload_{};
};

}  // namespace cairn::wire
