#include "rpc/erpc/directory.hpp"

#include <cstring>

#include "lib/wire/mad.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint16_t kManagementMtu = 256;
constexpr std::uint8_t kRetries = 15;
constexpr std::uint8_t kOfferLayout = 1;

// In the private data of an answer.
struct RawOffer {
    Be32 magic;
    std::uint8_t layout;
    std::uint8_t header_version;
    Be16 workers;
};
static_assert(sizeof(RawOffer) == 8 && alignof(RawOffer) == 1);
constexpr std::uint32_t kOfferMagic = 0x65525043;  // "eRPC"

cm::Config config_of(std::uint64_t seed) {
    cm::Config config;
    config.seed = seed;
    config.max_connections = 1;  // there are none
    config.max_retries = wire::CmRetries{kRetries};
    return config;
}

wire::ServiceId id_of(std::uint16_t name) {
    return wire::ip_service(wire::IpProtocol::Udp, name);
}

ServiceAnswer judge(const cm::Resolved& resolved) {
    using Outcome = ServiceAnswer::Outcome;
    if (!resolved.status.has_value()) {
        return {Outcome::Silent, {}};
    }
    if (*resolved.status != wire::SidrStatus::Valid) {
        return {Outcome::NoService, {}};
    }
    RawOffer raw{};
    std::memcpy(&raw, resolved.private_data.octets.data(), sizeof(raw));
    if (resolved.private_data.size < sizeof(raw) || raw.magic.get() != kOfferMagic || raw.layout != kOfferLayout ||
        raw.workers.get() == 0) {
        return {Outcome::NotErpc, {}};
    }
    if (raw.header_version != kHeaderVersion) {
        return {Outcome::OtherVersion, {}};
    }
    return {Outcome::Found, {resolved.qpn, resolved.qkey, raw.workers.get()}};
}

}  // namespace

const char* text_of(ServiceAnswer::Outcome outcome) noexcept {
    switch (outcome) {
        case ServiceAnswer::Outcome::Found:
            return "found";
        case ServiceAnswer::Outcome::Silent:
            return "the host does not answer";
        case ServiceAnswer::Outcome::NoService:
            return "it has no service of that name";
        case ServiceAnswer::Outcome::NotErpc:
            return "the service of that name is not eRPC's";
        case ServiceAnswer::Outcome::OtherVersion:
            return "it speaks another version of eRPC";
    }
    return "";
}

Directory::Directory(roce::UdService& service, roce::Sender& sender, std::uint64_t seed)
    : service_(service), sender_(sender), manager_(config_of(seed)) {}

Result<std::unique_ptr<Directory>> Directory::create(roce::UdService& service, roce::Sender& sender,
                                                     std::uint64_t seed) {
    std::unique_ptr<Directory> made(new Directory(service, sender, seed));
    roce::UdQpConfig config;
    config.qpn = wire::kGeneralServicesQpn;
    config.qkey = wire::kGeneralServicesQkey;
    config.path_mtu_bytes = kManagementMtu;
    const Result<roce::UdQp*> qp1 = service.create_qp(config, *made);
    if (!qp1.ok()) {
        return qp1.error();
    }
    made->qp1_ = qp1.value();
    return made;
}

Directory::~Directory() {
    if (qp1_ != nullptr) {
        service_.destroy_qp(qp1_);
    }
}

Status Directory::serve(std::uint16_t name, const ServiceOffer& offer) {
    const RawOffer raw{Be32{kOfferMagic}, kOfferLayout, kHeaderVersion, Be16{offer.workers}};
    const cm::DatagramService told{offer.qpn, offer.qkey, {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}};
    if (manager_.datagrams().listen(id_of(name), {}, told) != cm::Status::Ok) {
        return Error{"somebody serves under that name already", "choose another"};
    }
    return Nothing{};
}

void Directory::ask(const net::IpAddress& host, std::uint16_t name, std::uint16_t udp_source_port, Instant now) {
    if (question_.has_value()) {
        (void)manager_.datagrams().cancel(*question_);
    }
    udp_source_port_ = udp_source_port;
    cm::ResolveRequest request;
    request.route = {sender_.carrier().local_address(), host};
    request.service = id_of(name);
    request.source_port = name;
    const auto asked = manager_.datagrams().resolve(request, now);
    CAIRN_ASSERT(asked.ok());  // one at a time, without private data
    question_ = asked.value();
    send_messages(now);
}

std::optional<ServiceAnswer> Directory::poll_answer() {
    while (const std::optional<cm::Event> event = manager_.poll_event()) {
        const auto* const resolved = std::get_if<cm::Resolved>(&*event);
        if (resolved != nullptr && question_ == resolved->id) {
            question_.reset();
            return judge(*resolved);
        }
    }
    return std::nullopt;
}

void Directory::on_timeout(Instant now) {
    if (manager_.next_deadline() <= now) {
        manager_.on_timeout(now);
        send_messages(now);
    }
}

void Directory::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    for (const roce::UdDatagram& datagram : datagrams) {
        arrived_by_ = datagram.packet->path;
        const port::PathKey& key = arrived_by_->key();
        manager_.on_mad({key.local, key.remote}, {datagram.payload, datagram.payload_bytes}, now);
        send_messages(now);
    }
    arrived_by_ = nullptr;
}

void Directory::send_messages(Instant now) {
    while (const std::optional<cm::OutMad> mad = manager_.poll_transmit()) {
        send(*mad, now);
    }
}

// One that finds no buffer or no way is lost, and sent again as any other.
void Directory::send(const cm::OutMad& mad, Instant now) {
    const bool answers = arrived_by_ != nullptr && arrived_by_->key().remote == mad.route.remote;
    port::Path* const path =
        answers ? arrived_by_
                : sender_.carrier().open_path({mad.route.local, mad.route.remote, udp_source_port_, 0}, now);
    const port::PacketRef buffer = sender_.take();
    if (path == nullptr || buffer.cookie == nullptr) {
        if (buffer.cookie != nullptr) {
            sender_.give_back(buffer);
        }
        return;
    }
    roce::RawUd header = qp1_->make_header({path, wire::kGeneralServicesQpn, wire::kGeneralServicesQkey});
    header.bth.psn.set(qp1_->next_psn().value());
    std::memcpy(buffer.data, &header, sizeof(header));
    std::memcpy(buffer.data + sizeof(header), mad.bytes.data(), mad.bytes.size());
    sender_.send(buffer, path, sizeof(header) + mad.bytes.size() + port::kIcrcBytes, {}, now);
}

}  // namespace cairn::erpc
