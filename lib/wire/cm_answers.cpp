#include "lib/wire/cm_answers.hpp"

namespace cairn::wire {

namespace {

using FirstTwo = Bits<0, 2>;
using FirstThree = Bits<0, 3>;
using FirstFive = Bits<0, 5>;
using FirstSeven = Bits<0, 7>;
using FourthBit = Bits<3, 1>;
using FailoverBits = Bits<5, 2>;
using FlowControl = Bits<7, 1>;

constexpr std::uint8_t kReservedAnswered = 3;

}  // namespace

ParsedMad<Rep> Rep::parse(const Raw& raw) noexcept {
    Rep rep;
    rep.ids = raw.ids.get();
    rep.local_qkey = Qkey{raw.local_qkey.get()};
    rep.local_qpn = Qpn{raw.local_qpn.get()};
    rep.local_eecn = Eecn{raw.local_eecn.get()};
    rep.starting_psn = Psn{raw.starting_psn.get()};
    rep.responder_resources = raw.responder_resources;
    rep.initiator_depth = raw.initiator_depth;
    rep.target_ack_delay = CmTimeout{FirstFive::get(raw.ack_delay)};
    rep.failover = static_cast<Failover>(FailoverBits::get(raw.ack_delay));
    rep.flow_control = FlowControl::get(raw.ack_delay) != 0;
    rep.rnr_retry = RetryCount{FirstThree::get(raw.rnr_retry)};
    rep.srq = FourthBit::get(raw.rnr_retry) != 0;
    rep.local_ca_guid = raw.local_ca_guid.get();
    rep.private_data = raw.private_data;
    return rep;
}

void Rep::emit(Raw& raw) const noexcept {
    raw.ids.set(ids);
    raw.local_qkey.set(local_qkey.value);
    raw.local_qpn.set(local_qpn.value);
    raw.reserved15 = 0;
    raw.local_eecn.set(local_eecn.value);
    raw.reserved19 = 0;
    raw.starting_psn.set(starting_psn.value());
    raw.reserved23 = 0;
    raw.responder_resources = responder_resources;
    raw.initiator_depth = initiator_depth;
    raw.ack_delay = static_cast<std::uint8_t>(FirstFive::put(target_ack_delay.value) |
                                              FailoverBits::put(static_cast<std::uint8_t>(failover)) |
                                              FlowControl::put(flow_control ? 1 : 0));
    raw.rnr_retry = static_cast<std::uint8_t>(FirstThree::put(rnr_retry.value) | FourthBit::put(srq ? 1 : 0));
    raw.local_ca_guid.set(local_ca_guid);
    raw.private_data = private_data;
}

ParsedMad<Mra> Mra::parse(const Raw& raw) noexcept {
    const std::uint8_t message = FirstTwo::get(raw.message);
    if (message == kReservedAnswered) {
        return MadDrop::ReservedValue;
    }
    return Mra{raw.ids.get(), static_cast<Answered>(message), CmTimeout{FirstFive::get(raw.timeout)}, raw.private_data};
}

void Mra::emit(Raw& raw) const noexcept {
    raw.ids.set(ids);
    raw.message = FirstTwo::put(static_cast<std::uint8_t>(message));
    raw.timeout = FirstFive::put(service_timeout.value);
    raw.private_data = private_data;
}

ParsedMad<Rej> Rej::parse(const Raw& raw) noexcept {
    const std::uint8_t message = FirstTwo::get(raw.message);
    if (message == kReservedAnswered) {
        return MadDrop::ReservedValue;
    }
    const std::uint8_t info_bytes = FirstSeven::get(raw.info_length);
    if (info_bytes > kInfoBytes) {
        return MadDrop::BadInfoLength;
    }
    return Rej{raw.ids.get(),
               static_cast<Answered>(message),
               static_cast<RejectReason>(raw.reason.get()),
               info_bytes,
               raw.info,
               raw.private_data};
}

void Rej::emit(Raw& raw) const noexcept {
    raw.ids.set(ids);
    raw.message = FirstTwo::put(static_cast<std::uint8_t>(message));
    raw.info_length = FirstSeven::put(info_bytes);
    raw.reason.set(static_cast<std::uint16_t>(reason));
    raw.info = info;
    raw.private_data = private_data;
}

ParsedMad<Dreq> Dreq::parse(const Raw& raw) noexcept {
    return Dreq{raw.ids.get(), Qpn{raw.remote_qpn.get()}, raw.private_data};
}

void Dreq::emit(Raw& raw) const noexcept {
    raw.ids.set(ids);
    raw.remote_qpn.set(remote_qpn.value);
    raw.reserved11 = 0;
    raw.private_data = private_data;
}

}  // namespace cairn::wire
