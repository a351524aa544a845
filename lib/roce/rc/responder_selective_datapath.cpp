// Early requests of a Cairn peer: held in order, reported by a map, taken when the missing ones have come.
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

// Takes the oldest held packet. If a READ before it has taken its PSN, the peer is broken, and the packet is dropped
// like any old one.
std::optional<ResponderStop> Responder::take_held() noexcept {
    const bool expected = early_.front_psn() == expected_;
    const wire::Parsed<wire::Packet> packet = wire::Packet::parse(early_.front());
    CAIRN_ASSERT(packet.ok());  // it was when it came
    const std::optional<ResponderStop> stop = expected ? take(packet.value()) : std::nullopt;
    early_.release_front();
    return stop;
}

void Responder::give_held_up() noexcept {
    counters_.count(RcCounter::HeldInVain);
    early_.give_up();
}

// Writes a READ response that has a NAK and carries the map. It is well-formed for tools that read the wire. Only Cairn
// peers ask for it.
void Responder::emit_map(OutPacket& out) noexcept {
    delayed_acks_.note_acknowledged();
    out.payload.count = 1;
    out.payload.at[0] = early_.map(expected_);
    out.payload_bytes = static_cast<std::uint32_t>(out.payload.at[0].size());
    out.payload.sendable = false;
    write_headers(out, bth(expected_), service_, wire::Operation::ReadResponseOnly,
                  wire::Aeth{wire::NakCode::PsnSequence, msn_});
}

}  // namespace cairn::roce::rc
