// Early requests of a Cairn peer: held in order, reported by a map, taken when what was missing is here.
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

bool Responder::try_hold(const wire::Packet& packet, const PacketOffer& offer) noexcept {
    const Psn psn = packet.bth().psn;
    if (psn.since(expected_) > static_cast<std::int32_t>(kHeldPackets) || !held_->hold(chain_, psn, offer)) {
        return false;
    }
    counters_.count(RcCounter::Held);
    return true;
}

// A READ ahead of it may have taken its PSN: then the peer is broken, and the packet is dropped like any old one.
ResponderResult Responder::take_held() noexcept {
    const bool expected = held_->front_psn(chain_) == expected_;
    const wire::Parsed<wire::Packet> packet = wire::Packet::parse(held_->front(chain_));
    CAIRN_ASSERT(packet.ok());  // it was when it came
    const ResponderResult result = expected ? take(packet.value()) : ResponderResult::Ok;
    held_->release_front(chain_);
    return result;
}

// The peer was told what is missing as far as something behind it was held. Once all of that is here, what was dropped
// behind is to be asked for: by a plain NAK, after which all is sent again that comes behind it. With nothing held a
// NAK said so at once.
bool Responder::lacks_dropped() noexcept {
    if (!dropped_ || !chain_.empty()) {
        return false;
    }
    dropped_ = false;
    return dropped_until_.since(expected_) >= 0;
}

void Responder::give_held_up() noexcept {
    counters_.count(RcCounter::HeldInVain);
    note_dropped(held_->back_psn(chain_));
    held_->release_all(chain_);
}

void Responder::note_dropped(Psn psn) noexcept {
    dropped_until_ = dropped_ && psn.since(dropped_until_) < 0 ? dropped_until_ : psn;
    dropped_ = true;
}

// A READ response that says NAK and carries the map: well-formed for whoever looks at the wire, asked for by nobody
// else.
void Responder::emit_map(OutPacket& out) noexcept {
    unacknowledged_ = 0;
    out.payload_bytes = static_cast<std::uint32_t>(held_->map(chain_, expected_, map_));
    out.payload.count = 1;
    out.payload.at[0] = std::span(map_).first(out.payload_bytes);
    out.payload.sendable = false;
    write_headers(out, bth(expected_), service_, wire::Operation::ReadResponseOnly,
                  wire::Aeth{wire::NakCode::PsnSequence, msn_});
}

}  // namespace cairn::roce::rc
