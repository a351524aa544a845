#include "lib/cm/management_qp.hpp"

#include <cstring>

#include "lib/wire/mad.hpp"

namespace cairn::cm {

ManagementQp::ManagementQp(roce::UdMux& service, roce::Sender& sender, const Config& config,
                           std::uint16_t udp_source_port)
    : service_(service), sender_(sender), manager_(config), udp_source_port_(udp_source_port) {}

ManagementQp::~ManagementQp() {
    if (qp_ != nullptr) {
        service_.destroy_qp(qp_);
    }
}

cairn::Status ManagementQp::open() {
    roce::UdConfig config;
    config.qpn = wire::kGeneralServicesQpn;
    config.qkey = wire::kGeneralServicesQkey;
    config.path_mtu_bytes = wire::kMadBytes;
    const Result<roce::UdEntry*> created = service_.create_qp(config, *this);
    if (!created.ok()) {
        return created.error();
    }
    qp_ = created.value();
    return Nothing{};
}

void ManagementQp::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    for (const roce::UdDatagram& datagram : datagrams) {
        arrived_by_ = datagram.packet->path;
        const port::PathKey& key = arrived_by_->key();
        manager_.on_mad({key.local, key.remote}, {datagram.payload, datagram.payload_bytes}, now);
        heed(now);
    }
    arrived_by_ = nullptr;
}

void ManagementQp::run_due(Instant now) {
    if (manager_.next_deadline() <= now) {
        manager_.on_timeout(now);
        heed(now);
    }
}

port::Path* ManagementQp::own_path(const net::IpAddress& remote, Instant now) {
    return sender_.port().open_path({local_address(), remote, udp_source_port_, 0}, now);
}

port::Path* ManagementQp::path_to(const net::IpAddress& remote, Instant now) {
    const bool answers = arrived_by_ != nullptr && arrived_by_->key().remote == remote;
    return answers ? arrived_by_ : own_path(remote, now);
}

void ManagementQp::send_messages(Instant now) {
    while (const std::optional<OutMad> mad = manager_.poll_transmit()) {
        send(*mad, now);
    }
}

// One that finds no buffer or no way is lost, and sent again as any other.
void ManagementQp::send(const OutMad& mad, Instant now) {
    port::Path* const path = path_to(mad.route.remote, now);
    const port::PacketRef buffer = sender_.take();
    if (path == nullptr || buffer.cookie == nullptr) {
        if (buffer.cookie != nullptr) {
            sender_.give_back(buffer);
        }
        return;
    }
    wire::UdHeader said = qp_->header_to({path, wire::kGeneralServicesQpn, wire::kGeneralServicesQkey});
    said.psn = qp_->next_psn();
    const wire::RawUd header = said.raw(mad.bytes.size());
    std::memcpy(buffer.data, &header, sizeof(header));
    std::memcpy(buffer.data + sizeof(header), mad.bytes.data(), mad.bytes.size());
    sender_.send(buffer, path, sizeof(header) + mad.bytes.size() + port::kIcrcBytes, {}, now);
}

}  // namespace cairn::cm
