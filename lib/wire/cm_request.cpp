#include "lib/wire/cm_request.hpp"

namespace cairn::wire {

namespace {

using FirstFive = Bits<0, 5>;
using FirstFour = Bits<0, 4>;
using FifthBit = Bits<4, 1>;
using LastThree = Bits<5, 3>;
using ServiceType = Bits<5, 2>;
using FlowControl = Bits<7, 1>;
using Rate = Bits<2, 6>;

std::uint8_t joined(std::uint8_t one, std::uint8_t other, std::uint8_t third = 0) noexcept {
    return static_cast<std::uint8_t>(one | other | third);
}

}  // namespace

CmPath CmPath::parse(const RawCmPath& raw) noexcept {
    CmPath path;
    path.local_lid = raw.local_lid.get();
    path.remote_lid = raw.remote_lid.get();
    path.local_gid = raw.local_gid;
    path.remote_gid = raw.remote_gid;
    path.flow_label = FlowLabel{raw.flow_label.get() >> 4U};
    path.rate = PacketRate{Rate::get(raw.rate)};
    path.traffic_class = raw.traffic_class;
    path.hop_limit = raw.hop_limit;
    path.level = ServiceLevel{FirstFour::get(raw.level)};
    path.subnet_local = FifthBit::get(raw.level) != 0;
    path.ack_timeout = CmTimeout{FirstFive::get(raw.ack_timeout)};
    return path;
}

void CmPath::emit(RawCmPath& raw) const noexcept {
    raw.local_lid.set(local_lid);
    raw.remote_lid.set(remote_lid);
    raw.local_gid = local_gid;
    raw.remote_gid = remote_gid;
    raw.flow_label.set(flow_label.value << 4U);
    raw.rate = Rate::put(rate.value);
    raw.traffic_class = traffic_class;
    raw.hop_limit = hop_limit;
    raw.level = joined(FirstFour::put(level.value), FifthBit::put(subnet_local ? 1 : 0));
    raw.ack_timeout = FirstFive::put(ack_timeout.value);
}

ParsedMad<Req> Req::parse(const Raw& raw) noexcept {
    Req req;
    req.local_comm_id = CommId{raw.local_comm_id.get()};
    req.service_id = ServiceId{raw.service_id.get()};
    req.local_ca_guid = raw.local_ca_guid.get();
    req.local_qkey = Qkey{raw.local_qkey.get()};
    req.local_qpn = Qpn{raw.local_qpn.get()};
    req.responder_resources = raw.responder_resources;
    req.initiator_depth = raw.initiator_depth;
    req.local_eecn = Eecn{raw.local_eecn.get()};
    req.remote_eecn = Eecn{raw.remote_eecn.get()};
    req.remote_response_timeout = CmTimeout{FirstFive::get(raw.remote_timeout)};
    req.service = static_cast<TransportService>(ServiceType::get(raw.remote_timeout));
    req.flow_control = FlowControl::get(raw.remote_timeout) != 0;
    req.starting_psn = Psn{raw.starting_psn.get()};
    req.local_response_timeout = CmTimeout{FirstFive::get(raw.local_timeout)};
    req.retry_count = RetryCount{LastThree::get(raw.local_timeout)};
    req.pkey = Pkey{raw.pkey.get()};
    req.path_mtu = PathMtu{FirstFour::get(raw.mtu)};
    req.rdc_exists = FifthBit::get(raw.mtu) != 0;
    req.rnr_retry = RetryCount{LastThree::get(raw.mtu)};
    req.max_cm_retries = CmRetries{FirstFour::get(raw.retries)};
    req.srq = FifthBit::get(raw.retries) != 0;
    req.extended_transport = LastThree::get(raw.retries);
    req.primary = CmPath::parse(raw.primary);
    req.alternate = CmPath::parse(raw.alternate);
    req.private_data = raw.private_data;
    return req;
}

void Req::emit(Raw& raw) const noexcept {
    raw.local_comm_id.set(local_comm_id.value);
    raw.reserved4.set(0);
    raw.service_id.set(service_id.value);
    raw.local_ca_guid.set(local_ca_guid);
    raw.reserved24.set(0);
    raw.local_qkey.set(local_qkey.value);
    raw.local_qpn.set(local_qpn.value);
    raw.responder_resources = responder_resources;
    raw.local_eecn.set(local_eecn.value);
    raw.initiator_depth = initiator_depth;
    raw.remote_eecn.set(remote_eecn.value);
    raw.remote_timeout =
        joined(FirstFive::put(remote_response_timeout.value), ServiceType::put(static_cast<std::uint8_t>(service)),
               FlowControl::put(flow_control ? 1 : 0));
    raw.starting_psn.set(starting_psn.value());
    raw.local_timeout = joined(FirstFive::put(local_response_timeout.value), LastThree::put(retry_count.value));
    raw.pkey.set(pkey.value);
    raw.mtu =
        joined(FirstFour::put(path_mtu.value), FifthBit::put(rdc_exists ? 1 : 0), LastThree::put(rnr_retry.value));
    raw.retries =
        joined(FirstFour::put(max_cm_retries.value), FifthBit::put(srq ? 1 : 0), LastThree::put(extended_transport));
    primary.emit(raw.primary);
    alternate.emit(raw.alternate);
    raw.private_data = private_data;
}

}  // namespace cairn::wire
