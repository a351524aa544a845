// The responder of an unreliable connection: takes messages that come complete and in order, and drops all others in
// silence (IBTA vol. 1, 9.8.2, 9.8.3).
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

// Any First or Only packet begins anew, whatever its PSN. A Middle or Last packet without the packet before it is of no
// use (9.8.2.2).
std::optional<ResponderStop> Responder::on_unreliable(const wire::Packet& packet) noexcept {
    const bool starts = packet.traits().starts_message();
    const bool under_way = message_.kind != MessageKind::None;
    if (under_way && (starts || packet.bth().psn != expected_)) {
        cut_short(RcCounter::UnreliableCut);
    }
    expected_ = packet.bth().psn.next();
    if (!starts && message_.kind == MessageKind::None) {
        counters_.count(RcCounter::UnreliableRest);
        return std::nullopt;
    }
    std::uint8_t* place = nullptr;
    if (judge(packet, place) != RequestVerdict::Execute) {
        cut_short(RcCounter::UnreliableRefused);
        return std::nullopt;
    }
    expected_ = packet.bth().psn;  // act() steps on
    return act(packet, place);
}

// Departs: with a shared receive queue the specification has the request of such a SEND complete in error. Here it is
// kept for this queue pair's next message in that case, too, so that losses cost no receive requests.
void Responder::cut_short(RcCounter reason) noexcept {
    counters_.count(reason);
    receive_.is_kept = receive_.is_kept || message_.kind == MessageKind::Send;
    message_ = {};
}

}  // namespace cairn::roce::rc
