#include "rpc/erpc/directory.hpp"

#include <cstring>

#include "rpc/erpc/header.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint8_t kOfferLayout = 1;

// The private data of an answer.
struct RawOffer {
    Be32 magic;
    std::uint8_t layout;
    std::uint8_t header_version;
    Be16 workers;
};
static_assert(sizeof(RawOffer) == 8 && alignof(RawOffer) == 1);
constexpr std::uint32_t kOfferMagic = 0x65525043;  // "eRPC"

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

Status Directory::serve(std::uint16_t name, const ServiceOffer& offer) {
    const RawOffer raw{Be32{kOfferMagic}, kOfferLayout, kHeaderVersion, Be16{offer.workers}};
    const cm::DatagramService told{offer.qpn, offer.qkey, {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}};
    return home_.listen_datagrams(id_of(name), told, *this);
}

Status Directory::ask(const net::IpAddress& host, std::uint16_t name, Instant now) {
    answer_.reset();
    if (question_.has_value()) {
        (void)home_.manager().datagrams().cancel(*question_);
        question_.reset();
    }
    cm::ResolveRequest request;
    request.route = {home_.local_address(), host};
    request.service = id_of(name);
    request.source_port = name;
    const auto asked = home_.manager().datagrams().resolve(request, now, this);
    if (!asked.ok()) {
        if (asked.reason() != cm::CallRefusal::BadAddress) {
            return connections::status_of(asked.reason());
        }
        return Error{host.text() + " is no host's address, or not of the same family as ours",
                     "give the address of the host that serves, IPv4 or IPv6 as our own"};
    }
    question_ = asked.value();
    home_.settle(now);
    return Nothing{};
}

void Directory::on_event(const cm::Event& event, Instant) {
    const auto* const resolved = std::get_if<cm::Resolved>(&event);
    if (resolved != nullptr && question_ == resolved->id) {
        question_.reset();
        answer_ = judge(*resolved);
    }
}

}  // namespace cairn::erpc
