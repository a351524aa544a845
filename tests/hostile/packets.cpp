#include "tests/hostile/packets.hpp"

#include <cstring>

#include "lib/wire/ip_cm.hpp"

namespace cairn::hostile {

namespace {

constexpr std::uint8_t kErpcVersion = 4;
constexpr std::uint8_t kErpcMagic = 11;

struct RawErpc {
    std::uint8_t version = kErpcVersion;
    std::uint8_t kind = 0;
    std::uint8_t request_type = 0;
    Be24 message_bytes;
    Be16 session;
    Be16 type_and_number;
    Be48 request_and_magic;
};
static_assert(sizeof(RawErpc) == 16 && alignof(RawErpc) == 1);

}  // namespace

Bytes bytes_of(const wire::Packet& packet) {
    Bytes bytes(packet.bytes());
    const std::size_t headers = packet.emit(bytes);
    if (!packet.payload().empty()) {
        std::memcpy(bytes.data() + headers, packet.payload().data(), packet.payload().size());
    }
    return bytes;
}

Bytes datagram(Qpn to, Qkey qkey, Qpn from, std::span<const std::uint8_t> payload) {
    wire::Packet packet(wire::Service::Ud, wire::Operation::SendOnly);
    wire::Bth bth;
    bth.dest_qpn = to;
    packet.set_bth(bth);
    packet.set(wire::Deth{qkey, from});
    packet.set_payload(payload);
    return bytes_of(packet);
}

Bytes management(const wire::CmMad& mad) {
    return datagram(wire::kGeneralServicesQpn, wire::kGeneralServicesQkey, wire::kGeneralServicesQpn, mad.bytes());
}

std::optional<wire::CmMad> management_of(std::span<const std::uint8_t> udp_payload) {
    const wire::Parsed<wire::Packet> packet = wire::Packet::parse(udp_payload);
    if (!packet.ok() || packet.value().bth().dest_qpn != wire::kGeneralServicesQpn) {
        return std::nullopt;
    }
    const wire::ParsedMad<wire::CmMad> mad = wire::CmMad::parse(packet.value().payload());
    return mad.ok() ? std::optional(mad.value()) : std::nullopt;
}

wire::Gid gid_of(in_addr address) {
    wire::Gid gid{};
    gid[10] = gid[11] = 0xff;
    std::memcpy(gid.data() + 12, &address, sizeof(address));
    return gid;
}

wire::SidrReq sidr_question(std::uint32_t id, std::uint16_t service, in_addr from, in_addr to,
                            std::span<const std::uint8_t> data) {
    wire::SidrReq req;
    req.request_id = wire::SidrRequestId{id};
    req.service_id = wire::ip_service(wire::IpProtocol::Udp, service);
    wire::RawIpCmHeader addresses;
    wire::IpCmHeader{1, gid_of(from), gid_of(to)}.emit(addresses);
    std::memcpy(req.private_data.data(), &addresses, sizeof(addresses));
    if (!data.empty()) {
        std::memcpy(req.private_data.data() + sizeof(addresses), data.data(), data.size());
    }
    return req;
}

wire::Req connection_request(std::uint32_t id, Qpn qpn, std::uint16_t service, in_addr from, in_addr to,
                             std::span<const std::uint8_t> data) {
    wire::Req req;
    req.local_comm_id = wire::CommId{id};
    req.service_id = wire::ip_service(wire::IpProtocol::Tcp, service);
    req.local_qpn = qpn;
    req.responder_resources = req.initiator_depth = 4;
    req.remote_response_timeout = req.local_response_timeout = wire::CmTimeout{20};
    req.max_cm_retries = wire::CmRetries{15};
    req.path_mtu = wire::path_mtu_of(1024);
    req.primary.local_lid = req.primary.remote_lid = 0xffff;
    req.primary.local_gid = gid_of(from);
    req.primary.remote_gid = gid_of(to);
    req.primary.hop_limit = 64;
    req.primary.ack_timeout = wire::CmTimeout{14};
    wire::RawIpCmHeader addresses;
    wire::IpCmHeader{1, req.primary.local_gid, req.primary.remote_gid}.emit(addresses);
    std::memcpy(req.private_data.data(), &addresses, sizeof(addresses));
    std::memcpy(req.private_data.data() + sizeof(addresses), data.data(), data.size());
    return req;
}

Bytes erpc_payload(const ErpcHeader& header, std::span<const std::uint8_t> payload) {
    RawErpc raw;
    raw.kind = header.control ? 1 : 0;
    raw.request_type = header.request_type;
    raw.message_bytes.set(header.message_bytes);
    raw.session.set(header.session);
    raw.type_and_number.set(
        static_cast<std::uint16_t>((static_cast<unsigned>(header.type) << 14U) | (header.packet_number & 0x3fffU)));
    raw.request_and_magic.set((header.request_number << 4U) | kErpcMagic);
    Bytes bytes(sizeof(raw) + payload.size());
    std::memcpy(bytes.data(), &raw, sizeof(raw));
    if (!payload.empty()) {
        std::memcpy(bytes.data() + sizeof(raw), payload.data(), payload.size());
    }
    return bytes;
}

std::optional<ErpcDatagram> erpc_of(std::span<const std::uint8_t> udp_payload) {
    const wire::Parsed<wire::Packet> packet = wire::Packet::parse(udp_payload);
    if (!packet.ok() || packet.value().payload().size() < sizeof(RawErpc)) {
        return std::nullopt;
    }
    const std::span<const std::uint8_t> payload = packet.value().payload();
    const auto raw = read_raw<RawErpc>(payload.data());
    ErpcDatagram read;
    read.header.control = raw.kind == 1;
    read.header.request_type = raw.request_type;
    read.header.message_bytes = raw.message_bytes.get();
    read.header.session = raw.session.get();
    read.header.type = static_cast<ErpcType>(raw.type_and_number.get() >> 14U);
    read.header.packet_number = raw.type_and_number.get() & 0x3fffU;
    read.header.request_number = raw.request_and_magic.get() >> 4U;
    read.payload = payload.subspan(sizeof(raw));
    return read;
}

}  // namespace cairn::hostile
