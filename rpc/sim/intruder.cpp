#include "rpc/sim/intruder.hpp"

#include <algorithm>

#include "rpc/sim/babbler.hpp"

namespace cairn::sim {

void Intruder::overhear(const Frame& frame) {
    if (frame.damaged) {
        return;  // a second copy would have no effect
    }
    if (overheard_.size() < kOverheardMost) {
        overheard_.push_back(frame);
    } else if (random_.chance(kMillion / 4)) {
        overheard_[random_.below(overheard_.size())] = frame;
    }
}

void Intruder::on_frame(const Frame& frame, Instant now) {
    Draft seen;
    seen.copy(std::span(frame.bytes).subspan(frame.lower_bytes()));
    if (seen.len < Draft::kControlBytes || !seen.readable() || !erpc::Control::known(seen.control()) ||
        erpc::Header::parse(seen.header()).kind != erpc::Kind::Control) {
        return;
    }
    const erpc::Control control = erpc::Control::parse(seen.control());
    const std::size_t server = network_.node_of(frame.source());
    if (control.type == erpc::ControlType::Challenge) {
        erpc::Control proof = proposal(control.token);
        proof.cookie = control.cookie;
        send(proof, node_, server, frame.udp_source_port(), now);
    } else if (control.type == erpc::ControlType::Accepted) {
        ++opened_;
        held_.push_back({server, frame.udp_source_port(), control.token});
        ask_for_nothing(control, server, frame.udp_source_port(), now);
    } else if (control.type == erpc::ControlType::Disconnected) {
        std::erase_if(held_, [&](const Held& each) { return each.token == control.token; });
    }
}

void Intruder::act(Instant now) {
    connect(now);
    hold(now);
    spoof(now);
    if (!overheard_.empty()) {
        ++replayed_;
        network_.send(node_, overheard_[random_.below(overheard_.size())], now);
    }
}

void Intruder::connect(Instant now) {
    send(proposal(random_.next()), node_, any_server(), next_port_++, now);
}

void Intruder::hold(Instant now) {
    for (std::size_t i = 0; i < std::min<std::size_t>(held_.size(), 8); ++i) {
        next_ping_ = (next_ping_ + 1) % held_.size();
        const Held& held = held_[next_ping_];
        erpc::Control ping;
        ping.token = held.token;
        ping.cookie = ++pings_;
        send(ping, node_, held.server, held.udp_port, now);
    }
}

// Sends a request of a type without a handler.
void Intruder::ask_for_nothing(const erpc::Control& accepted, std::size_t server, std::uint16_t udp_port, Instant now) {
    Draft draft;
    erpc::Header header;
    header.session = accepted.sender_session;
    header.request_type = Babbler::kNoType;
    header.request_number = (accepted.first_request + erpc::kSlotsPerSession) & erpc::kRequestNumberMask;
    header.emit(draft.header());
    draft.len = Draft::kHeaders;
    send(draft, node_, server, udp_port, now);
}

// Sends packets in the bystander's name that might cause answers.
void Intruder::spoof(Instant now) {
    ++spoofed_;
    const auto udp_port = static_cast<std::uint16_t>(random_.below(4));
    const std::size_t server = any_server();
    if (random_.chance(kMillion / 2)) {
        erpc::Control control = proposal(random_.below(8));
        control.type = static_cast<erpc::ControlType>(random_.between(1, 9));
        control.cookie = random_.chance(kMillion / 2) ? 0 : random_.next();
        from_bystander_ += send(control, bystander_, server, udp_port, now);
        return;
    }
    Draft draft;
    erpc::Header header;
    header.type = static_cast<erpc::PacketType>(random_.below(4));
    header.session = SessionId{static_cast<std::uint16_t>(random_.below(64))};
    header.request_type = static_cast<std::uint8_t>(random_.below(8));
    header.request_number = random_.next() & erpc::kRequestNumberMask;
    header.emit(draft.header());
    draft.len = Draft::kHeaders;
    from_bystander_ += send(draft, bystander_, server, udp_port, now);
}

erpc::Control Intruder::proposal(std::uint64_t token) const noexcept {
    erpc::Control control;
    control.type = erpc::ControlType::Connect;
    control.credits = 8;
    control.path_mtu_bytes = path_mtu_bytes_;
    control.token = token;
    return control;
}

std::size_t Intruder::send(const erpc::Control& control, std::size_t from, std::size_t to, std::uint16_t udp_port,
                           Instant now) {
    Draft draft;
    erpc::Header header;
    header.kind = erpc::Kind::Control;
    header.message_bytes = control.payload_bytes(path_mtu_bytes_ - static_cast<std::uint32_t>(sizeof(erpc::RawHeader)));
    header.emit(draft.header());
    std::memset(draft.datagram() + Draft::kHeaders, 0, header.message_bytes);
    control.emit(draft.control());
    draft.len = Draft::kHeaders + header.message_bytes;
    return send(draft, from, to, udp_port, now);
}

// Sends a packet. Returns its bytes on the wire.
std::size_t Intruder::send(Draft& draft, std::size_t from, std::size_t to, std::uint16_t udp_port, Instant now) {
    wire::Bth bth;
    bth.opcode = wire::kUdSendOnly;
    bth.dest_qpn = qpn_;
    bth.emit(draft.ud().bth);
    draft.ud().deth.qkey.set(kErpcQkey.value);
    draft.ud().deth.reserved = 0;
    draft.ud().deth.source_qpn.set(qpn_.value);
    draft.len += port::kIcrcBytes;
    const port::PathKey key{network_.address_of(from), network_.address_of(to), udp_port, 0};
    draft.send(network_, node_, key, now);
    return draft.len + port::Path(key).lower_bytes();
}

}  // namespace cairn::sim
