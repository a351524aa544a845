// Packets of congested sessions: into the wheel by their rate, and out of it when their time has come.
#include <algorithm>

#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

void Endpoint::pace(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    const std::size_t bytes = kPacketOverheadBytes + (number < transfer.request_packets ? packet_bytes_ : 0);
    const Instant when = std::max(session.next_send, now);
    const PacedPacket packet{slot.request_number, number, session.self.value, static_cast<std::uint8_t>(slot.index())};
    session.next_send = when + session.control->gap(bytes);
    if (when <= now || !wheel_->insert(packet, when)) {
        transmit_number(session, slot, number, now);
        return;
    }
    ++transfer.in_wheel;
}

void Endpoint::run_wheel(Instant now) noexcept {
    wheel_->advance(now, [this, now](const PacedPacket& packet) {
        Session& session = sessions_[packet.session];
        if (session.client_slots == nullptr) {
            return;
        }
        ClientSlot& slot = (*session.client_slots)[packet.slot];
        if (slot.transfer == nullptr || slot.request_number != packet.request_number) {
            return;  // its call is over
        }
        --slot.transfer->in_wheel;
        session.control->on_timeout(now);
        if (slot.transfer->answered.has(packet.number)) {
            return;
        }
        transmit_number(session, slot, packet.number, now);
    });
}

}  // namespace cairn::erpc
