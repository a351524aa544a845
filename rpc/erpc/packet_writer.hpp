// Composes an endpoint's data and control packets, and hands them to the sender.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/roce/send/sender.hpp"
#include "lib/roce/ud/known_start.hpp"
#include "lib/roce/ud/mux.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/erpc/drops.hpp"
#include "rpc/erpc/endpoint_config.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/erpc/header_words.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

class PacketWriter {
public:
    // The arguments outlive the writer. use() must be called before anything is sent.
    PacketWriter(roce::Sender& sender, const EndpointConfig& config, Statistics& statistics) noexcept
        : sender_(sender),
          statistics_(statistics),
          packet_bytes_(config.qp.path_mtu_bytes - static_cast<std::uint32_t>(sizeof(RawHeader))),
          small_bytes_(std::min(packet_bytes_, kTailBytes - 1)),
          qkey_(config.qp.qkey),
          selective_(config.selective) {}
    void use(roce::UdEntry& qp) noexcept { qp_ = &qp; }

    [[nodiscard]] roce::Sender& sender() noexcept { return sender_; }
    // Returns the payload bytes of each packet of a message but the last.
    [[nodiscard]] std::uint32_t packet_bytes() const noexcept { return packet_bytes_; }
    // Returns how long a packet that came in this burst may have waited in our port.
    [[nodiscard]] Duration held(Instant now) noexcept { return now - sender_.port().empty_at(); }

    // Returns an empty buffer. If there is none, `cookie` is nullptr and NoBuffer is counted; a timer tries again.
    [[nodiscard]] port::PacketRef take() noexcept {
        const port::PacketRef buffer = sender_.take();
        if (buffer.cookie == nullptr) [[unlikely]] {
            statistics_.count(Drop::NoBuffer);
        }
        return buffer;
    }
    // Takes `buffer` and sends one packet of a message in it. Copies the payload, or sends it from where it lies if
    // that is cheaper and the port can. In the latter case the payload's memory must stay until settle().
    void send(Session& session, const port::PacketRef& buffer, const Header& header,
              std::span<const std::uint8_t> payload, Instant now) noexcept;

    // Returns the size of the longest message that is copied into one packet.
    [[nodiscard]] std::uint32_t small_bytes() const noexcept { return small_bytes_; }
    // Does what send() does, for a message of small_bytes() at most whose header is ready.
    void send_small(Session& session, const port::PacketRef& buffer, FirstWord first, SecondWord second,
                    std::span<const std::uint8_t> payload, Instant now) noexcept;

    // Returns false if there is no buffer. The peer that waits for the message then asks again.
    bool send_control(const roce::UdAddress& to, const Control& control, Instant now) noexcept;
    // Sends a control message filled from the session. `request_number`: for RequestRefused and a Ping with Ahead.
    bool send_control(Session& session, ControlType type, Instant now, RefuseReason reason = RefuseReason::None,
                      std::uint64_t request_number = 0) noexcept;
    // Refuses a request. The server keeps nothing of it, and refuses each copy of it anew.
    void refuse(Session& session, std::uint64_t request_number, RefuseReason reason, Instant now) noexcept;

    // Afterwards no packet that waits refers to `payload`.
    void settle(std::span<const std::uint8_t> payload) noexcept {
        if (payload.size() >= kTailBytes) {
            sender_.settle_tails(payload);
        }
    }
    [[nodiscard]] wire::RawUd header_to(const roce::UdAddress& to) const noexcept { return qp_->make_header(to); }
    [[nodiscard]] std::uint64_t source_word_of(const roce::UdAddress& from) const noexcept {
        return roce::KnownStart::source_word(qkey_, from.qpn);
    }
    // Returns the address of the peer that sent the datagram.
    [[nodiscard]] roce::UdAddress source_of(const roce::UdDatagram& datagram) const noexcept {
        return {datagram.packet->path, datagram.source_qpn, qkey_};
    }

private:
    std::uint8_t* begin_packet(Session& session, const port::PacketRef& buffer, std::size_t payload_bytes) noexcept;

    roce::Sender& sender_;
    Statistics& statistics_;
    roce::UdEntry* qp_ = nullptr;
    std::uint32_t packet_bytes_;
    std::uint32_t small_bytes_;
    Qkey qkey_;
    bool selective_;
};

// Writes BTH and DETH from the session's template, and the pad after the payload. Returns where our header goes.
[[gnu::always_inline]] inline std::uint8_t* PacketWriter::begin_packet(Session& session, const port::PacketRef& buffer,
                                                                       std::size_t payload_bytes) noexcept {
    const std::size_t bytes = room_for(payload_bytes);
    CAIRN_ASSERT(bytes <= buffer.room);
    roce::UdEntry& qp = *qp_;
    std::uint8_t* const at = buffer.data;
    std::memcpy(at, &session.header, sizeof(session.header));
    session.header.bth.resv8a = 0;  // one packet carries BECN
    qp.stamp(at);
    if (payload_bytes % 4 != 0) [[unlikely]] {
        const std::uint32_t pad = wire::pad_for(payload_bytes);
        at[offsetof(wire::RawBth, flags)] = static_cast<std::uint8_t>(session.header.bth.flags | (pad << 4U));
        std::memset(at + bytes - port::kIcrcBytes - 4, 0, 4);
    }
    return at + sizeof(wire::RawUd);
}

// Always inlined: as a call it took twice the instructions.
[[gnu::always_inline]] inline void PacketWriter::send_small(Session& session, const port::PacketRef& buffer,
                                                            FirstWord first, SecondWord second,
                                                            std::span<const std::uint8_t> payload,
                                                            Instant now) noexcept {
    roce::Sender& sender = sender_;
    std::uint8_t* const at = begin_packet(session, buffer, payload.size());
    first.write(at);
    second.write(at + sizeof(std::uint64_t));
    copy_bytes(at + sizeof(RawHeader), payload.data(), payload.size());
    sender.send(buffer, session.peer.path, room_for(payload.size()), {}, now);
}

}  // namespace cairn::erpc
