#include "tests/hostile/erpc_client.hpp"

#include <cstring>
#include <utility>

namespace cairn::hostile {

namespace {

Bytes control_packet(const ErpcService& service, const RawControl& raw, std::uint32_t bytes = sizeof(RawControl)) {
    ErpcHeader header;
    header.control = true;
    header.message_bytes = bytes;
    header.session = raw.receiver_session.get();
    Bytes payload(bytes);
    std::memcpy(payload.data(), &raw, sizeof(raw));
    return datagram(service.qpn, service.qkey, kOwnQpn, erpc_payload(header, payload));
}

RawControl connect_of(std::uint64_t token, std::uint16_t local) {
    RawControl raw;
    raw.type = static_cast<std::uint8_t>(ControlType::Connect);
    raw.sender_session.set(local);
    raw.token.set(token);
    return raw;
}

std::optional<RawControl> control_of(std::span<const std::uint8_t> udp_payload) {
    const std::optional<ErpcDatagram> datagram = erpc_of(udp_payload);
    if (!datagram || !datagram->header.control || datagram->payload.size() < sizeof(RawControl)) {
        return std::nullopt;
    }
    return read_raw<RawControl>(datagram->payload.data());
}

// Returns the target's answer to the packet, if it is of that type.
std::optional<RawControl> ask(Attacker& attacker, Host& host, Bytes packet, ControlType wanted) {
    if (!attacker.send(host, std::move(packet))) {
        return std::nullopt;
    }
    const std::optional<RawControl> answer = control_of(attacker.await(host));
    return answer && answer->type == static_cast<std::uint8_t>(wanted) ? answer : std::nullopt;
}

}  // namespace

std::optional<ErpcService> resolve(Attacker& attacker, Host& host) {
    while (!attacker.over()) {
        const wire::SidrReq req = sidr_question(static_cast<std::uint32_t>(attacker.random()),
                                                attacker.options().service, host.address(), attacker.options().target);
        (void)attacker.send(host, management({attacker.random(), req}));
        const std::optional<wire::CmMad> answer = management_of(attacker.await(host));
        if (answer && std::holds_alternative<wire::SidrRep>(answer->message)) {
            const auto& rep = std::get<wire::SidrRep>(answer->message);
            if (rep.status == wire::SidrStatus::Valid) {
                return ErpcService{rep.qpn, rep.qkey};
            }
        }
    }
    return std::nullopt;
}

Bytes ErpcSession::control(ControlType type, std::uint64_t number) const {
    RawControl raw;
    raw.type = static_cast<std::uint8_t>(type);
    raw.sender_session.set(local);
    raw.receiver_session.set(remote);
    raw.token.set(token);
    raw.cookie.set(number);
    return control_packet(service, raw);
}

Bytes ErpcSession::request(unsigned slot, unsigned turn, std::uint32_t message_bytes, std::uint16_t packet,
                           std::span<const std::uint8_t> payload) const {
    ErpcHeader header;
    header.request_type = 1;
    header.message_bytes = message_bytes;
    header.session = remote;
    header.packet_number = packet;
    header.request_number = first_request + slot + (std::uint64_t{turn} + 1) * kSlots;  // the first request comes after
                                                                                        // none
    return datagram(service.qpn, service.qkey, kOwnQpn, erpc_payload(header, payload));
}

Bytes first_connect(const ErpcService& service, std::uint64_t token, std::uint16_t local) {
    return control_packet(service, connect_of(token, local));
}

Bytes second_connect(const ErpcService& service, std::uint64_t token, std::uint16_t local, std::uint64_t cookie) {
    RawControl raw = connect_of(token, local);
    raw.cookie.set(cookie);
    return control_packet(service, raw, kPacketBytes);
}

std::optional<ErpcSession> open_session(Attacker& attacker, Host& host, const ErpcService& service,
                                        std::uint16_t local) {
    ErpcSession session;
    session.service = service;
    session.token = attacker.random();
    session.local = local;
    host.drain();
    const std::optional<RawControl> challenge =
        ask(attacker, host, first_connect(service, session.token, local), ControlType::Challenge);
    if (!challenge) {
        return std::nullopt;
    }
    session.cookie = challenge->cookie.get();
    const std::optional<RawControl> accepted =
        ask(attacker, host, second_connect(service, session.token, local, session.cookie), ControlType::Accepted);
    if (!accepted) {
        return std::nullopt;
    }
    session.remote = accepted->sender_session.get();
    session.first_request = accepted->first_request.get();
    return session;
}

}  // namespace cairn::hostile
