// Hosts that ask for connections and then stay silent.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "lib/wire/cm_message.hpp"
#include "lib/wire/ip_cm.hpp"
#include "lib/wire/packet.hpp"
#include "tests/support/wire_port.hpp"
#include "tests/unit/copyrpc/host.hpp"

namespace cairn::copyrpc {

// Requests of made-up hosts. Each is another host: its sender's name, queue pair and adapter are new.
class Crowd {
public:
    // Makes hosts that do not receive the server's answers.
    explicit Crowd(test::WirePort& server) : to_(server.local_address()) {
        port_.join(server);
        server.loses_strays = true;
    }
    // Asks for copyrpc's service from the address `source`, with these private data.
    void ask(const net::IpAddress& source, std::span<const std::uint8_t> said, Instant now) {
        ++asked_;
        wire::Req req = request(source);
        std::copy(said.begin(), said.end(), req.private_data.begin() + sizeof(wire::RawIpCmHeader));
        const wire::MadBytes mad = wire::CmMad{asked_, req}.bytes();
        wire::Packet datagram(wire::Service::Ud, wire::Operation::SendOnly);
        wire::Bth bth;
        bth.dest_qpn = wire::kGeneralServicesQpn;
        datagram.set_bth(bth);
        datagram.set(wire::Deth{wire::kGeneralServicesQkey, wire::kGeneralServicesQpn});
        datagram.set_payload(mad);

        port::TxPacket sent;
        ASSERT_EQ(port_.allocate_burst({&sent.packet, 1}), 1U);
        const std::size_t headers = datagram.emit({sent.packet.data, sent.packet.room});
        std::memcpy(sent.packet.data + headers, mad.data(), mad.size());
        sent.packet.len = static_cast<std::uint16_t>(datagram.bytes());
        sent.packet.path = port_.open_path({source, to_, port::kFirstUdpSourcePort, 0}, now);
        ASSERT_NE(sent.packet.path, nullptr);
        ASSERT_EQ(port_.transmit_burst({&sent, 1}, now), 1U);
    }
    [[nodiscard]] std::uint32_t asked() const noexcept { return asked_; }

private:
    // Returns a request with the longest timeouts that are possible.
    [[nodiscard]] wire::Req request(const net::IpAddress& source) const {
        wire::Req req;
        req.local_comm_id = wire::CommId{0x10000 + asked_};
        req.local_ca_guid = 0x5000'0000'0000 + asked_;
        req.local_qpn = Qpn{0x1000 + asked_};
        req.service_id = wire::ip_service(wire::IpProtocol::Tcp, kService);
        req.responder_resources = req.initiator_depth = 16;
        req.path_mtu = wire::path_mtu_of(1024);
        req.primary.local_gid = source.octets();
        req.primary.remote_gid = to_.octets();
        req.primary.ack_timeout = wire::CmTimeout{31};
        req.local_response_timeout = req.remote_response_timeout = wire::CmTimeout{31};
        req.max_cm_retries = wire::CmRetries{15};
        wire::RawIpCmHeader ends;
        wire::IpCmHeader{1, req.primary.local_gid, req.primary.remote_gid}.emit(ends);
        std::memcpy(req.private_data.data(), &ends, sizeof(ends));
        return req;
    }

    test::WirePort port_{"10.9.9.9", 64};
    net::IpAddress to_;
    std::uint32_t asked_ = 0;
};

}  // namespace cairn::copyrpc
