#include "lib/net/host.hpp"

#include <algorithm>
#include <utility>

#include "lib/net/arp.hpp"
#include "lib/net/icmp.hpp"

namespace cairn::net {

namespace {

constexpr std::size_t kEthernet = EthernetHeader::kBytes;
constexpr std::uint8_t kTtl = 64;

// Writes an echo reply to `request`: its type and id, then the request's data. The checksum covers `message` and
// `pseudo`.
void write_reply(std::span<std::uint8_t> message, const IcmpEcho& request, std::uint8_t type,
                 ChecksumSum pseudo) noexcept {
    IcmpEcho reply{type, 0, request.id, request.sequence};
    emit_at(message.data(), reply);
    pseudo.add(message);
    reply.checksum = pseudo.checksum();
    emit_at(message.data(), reply);
}

}  // namespace

bool is_neighbour_message(std::span<const std::uint8_t> frame) noexcept {
    const auto ethernet = EthernetHeader::parse(frame);
    if (!ethernet.ok() || ethernet.value().type != kEtherTypeIpv6) {
        return ethernet.ok() && ethernet.value().type == kEtherTypeArp;
    }
    const auto ip = Ipv6Header::parse(frame.subspan(kEthernet));
    const auto message = ip.ok() ? frame.subspan(kEthernet + Ipv6Header::kBytes) : std::span<const std::uint8_t>();
    return !message.empty() && ip.value().next_header == kProtocolIcmpV6 &&
           (message[0] == kIcmpV6Solicitation || message[0] == kIcmpV6Advertisement);
}

std::size_t Host::on_frame(Frame frame, Instant now, Out out) noexcept {
    const auto parsed = EthernetHeader::parse(frame);
    if (!parsed.ok()) {
        return drop(parsed.reason());
    }
    const EthernetHeader& ethernet = parsed.value();
    if (ethernet.source == config_.mac || !ethernet.source.is_station()) {
        return drop(Drop::BadAddress);
    }
    if (!ethernet.destination.is_group() && ethernet.destination != config_.mac) {
        return drop(Drop::NotForUs);
    }
    const Frame packet = frame.subspan(kEthernet);
    switch (ethernet.type) {
        case kEtherTypeArp:
            return on_arp(packet, now, out);
        case kEtherTypeIpv4:
            return on_ipv4(ethernet, packet, out);
        case kEtherTypeIpv6:
            return on_ipv6(ethernet, packet, now, out);
        default:
            return drop(Drop::Unsupported);
    }
}

// Follows RFC 826, "Packet Reception"; RFC 5227, 2.4 for the conflict.
std::size_t Host::on_arp(Frame message, Instant now, Out out) noexcept {
    const auto parsed = ArpMessage::parse(message);
    if (!parsed.ok()) {
        return drop(parsed.reason());
    }
    const ArpMessage& arp = parsed.value();
    if (arp.sender_ip == config_.address) {
        return drop(Drop::AddressConflict);
    }
    if (arp.sender_ip.is_station()) {  // the sender of a probe has no address yet
        learn(arp.sender_ip, arp.sender_mac, now);
    }
    if (arp.target_ip != config_.address) {
        return drop(Drop::NotForUs);
    }
    return arp.operation == ArpOperation::Request ? write_arp(true, arp.sender_mac, arp.sender_ip, out) : 0;
}

std::size_t Host::on_ipv4(const EthernetHeader& ethernet, Frame packet, Out out) noexcept {
    const auto parsed = Ipv4Header::parse(packet);
    if (!parsed.ok()) {
        return drop(parsed.reason());
    }
    const Ipv4Header& ip = parsed.value();
    if (ip.destination != config_.address) {
        return drop(Drop::NotForUs);
    }
    if (ip.is_fragment()) {
        return drop(Drop::Fragment);
    }
    if (!ip.source.is_station() || ip.source == config_.address) {
        return drop(Drop::BadAddress);
    }
    if (ip.protocol != kProtocolIcmp) {
        return drop(Drop::Unsupported);
    }
    const Frame message = packet.subspan(Ipv4Header::kBytes, ip.total_bytes - Ipv4Header::kBytes);
    const auto echo = IcmpEcho::parse(message, {});
    if (!echo.ok() || echo.value().type != kIcmpEchoRequest) {
        return drop(echo.ok() ? Drop::Unsupported : echo.reason());
    }
    const std::size_t bytes = std::max(kEthernet + ip.total_bytes, kLeastFrameBytes);
    if (bytes > out.size()) {
        return drop(Drop::NoBuffer);
    }
    std::fill_n(out.begin(), bytes, std::uint8_t{0});
    emit_at(out.data(), EthernetHeader{ethernet.source, config_.mac, kEtherTypeIpv4});
    Ipv4Header answer = ip;
    answer.id = 0;
    answer.flags_and_offset = Ipv4Header::kDontFragment;
    answer.ttl = kTtl;
    answer.source = config_.address;
    answer.destination = ip.source;
    emit_at(out.data() + kEthernet, answer);
    const Out reply = out.subspan(kEthernet + Ipv4Header::kBytes, message.size());
    std::copy(message.begin(), message.end(), reply.begin());
    write_reply(reply, echo.value(), kIcmpEchoReply, {});
    return bytes;
}

std::size_t Host::on_ipv6(const EthernetHeader& ethernet, Frame packet, Instant now, Out out) noexcept {
    const auto parsed = Ipv6Header::parse(packet);
    if (!parsed.ok()) {
        return drop(parsed.reason());
    }
    const Ipv6Header& ip = parsed.value();
    const bool ours = ip.destination == config_.address || ip.destination == all_nodes_group() ||
                      (!config_.address.is_v4() && ip.destination == solicited_node_group(config_.address));
    if (!ours) {
        return drop(Drop::NotForUs);
    }
    if (ip.next_header != kProtocolIcmpV6) {
        return drop(is_ipv6_extension(ip.next_header) ? Drop::Options : Drop::Unsupported);
    }
    const Frame message = packet.subspan(Ipv6Header::kBytes, ip.payload_bytes);
    if (!message.empty() && (message[0] == kIcmpV6Solicitation || message[0] == kIcmpV6Advertisement)) {
        return on_neighbour(ethernet, ip, message, now, out);
    }
    ChecksumSum pseudo;
    pseudo.add_pseudo_header(ip.source, ip.destination, kProtocolIcmpV6, ip.payload_bytes);
    const auto echo = IcmpEcho::parse(message, pseudo);
    if (!echo.ok() || echo.value().type != kIcmpV6EchoRequest || ip.destination != config_.address) {
        return drop(echo.ok() ? Drop::Unsupported : echo.reason());
    }
    if (!ip.source.is_station() || ip.source == config_.address) {
        return drop(Drop::BadAddress);
    }
    const std::size_t bytes = kEthernet + Ipv6Header::kBytes + message.size();
    if (bytes > out.size()) {
        return drop(Drop::NoBuffer);
    }
    emit_at(out.data(), EthernetHeader{ethernet.source, config_.mac, kEtherTypeIpv6});
    Ipv6Header answer = ip;
    answer.flow_label = 0;
    answer.hop_limit = kTtl;
    answer.source = config_.address;
    answer.destination = ip.source;
    emit_at(out.data() + kEthernet, answer);
    const Out reply = out.subspan(kEthernet + Ipv6Header::kBytes, message.size());
    std::copy(message.begin(), message.end(), reply.begin());
    write_reply(reply, echo.value(), kIcmpV6EchoReply, pseudo);  // the same sum: addresses only change places
    return bytes;
}

// Follows RFC 4861, 7.2.3 to 7.2.5.
std::size_t Host::on_neighbour(const EthernetHeader& ethernet, const Ipv6Header& ip, Frame message, Instant now,
                               Out out) noexcept {
    const auto parsed = NeighbourMessage::parse(ip, message);
    if (!parsed.ok()) {
        return drop(parsed.reason());
    }
    const NeighbourMessage& neighbour = parsed.value();
    if (neighbour.advertisement) {
        if (neighbour.target == config_.address) {
            return drop(Drop::AddressConflict);
        }
        if (neighbour.mac) {
            learn(neighbour.target, *neighbour.mac, now, neighbour.replaces ? Override::Yes : Override::No);
        }
        return 0;
    }
    if (ip.source == config_.address) {
        return drop(Drop::AddressConflict);
    }
    if (neighbour.mac && ip.source.is_station()) {
        learn(ip.source, *neighbour.mac, now);
    }
    if (neighbour.target != config_.address) {
        return drop(Drop::NotForUs);
    }
    // A solicitation without a source asks if the address is taken, so everyone shall hear the answer. A solicitation
    // without a link-layer address is answered to the station that it came from (RFC 4861, 7.2.4).
    NeighbourMessage answer;
    answer.advertisement = true;
    answer.target = config_.address;
    answer.solicited = ip.source.is_station();
    if (!answer.solicited) {
        return write_nd(group_mac(all_nodes_group()), all_nodes_group(), answer, out);
    }
    return write_nd(neighbour.mac.value_or(ethernet.source), ip.source, answer, out);
}

void Host::learn(const IpAddress& address, const MacAddress& mac, Instant now, Override replaces) noexcept {
    if (config_.gateway == address) {  // the gateway is the next hop of peers beyond it
        (void)neighbours_.resolve(address, now);
    }
    const NeighbourTable::Learnt learnt = neighbours_.learn(address, mac, now, replaces);
    if (learnt == NeighbourTable::Learnt::TooFrequent) {
        drops_.count(Drop::TooFrequent);
    } else if (learnt == NeighbourTable::Learnt::NotWanted) {
        named_ = Name{address, mac};
    }
}

const IpAddress& Host::next_hop(const IpAddress& remote) const noexcept {
    const bool on_link = !config_.gateway || config_.prefix_bits == 0 || remote.is_v6_link_local() ||
                         remote.shares_prefix(config_.address, config_.prefix_bits);
    return on_link ? remote : *config_.gateway;
}

std::optional<MacAddress> Host::resolve(const IpAddress& remote, Instant now) noexcept {
    if (remote.is_v4() != config_.address.is_v4()) {
        return std::nullopt;  // a question needs an address of ours in the same family
    }
    return neighbours_.resolve(next_hop(remote), now);
}

std::size_t Host::poll_question(Instant now, Out out) noexcept {
    const std::optional<NeighbourTable::Question> question = neighbours_.poll_question(now);
    if (!question) {
        return 0;
    }
    if (question->address.is_v4()) {
        return write_arp(false, question->to.value_or(kBroadcastMac), question->address, out);
    }
    NeighbourMessage solicitation;
    solicitation.target = question->address;
    const IpAddress group = solicited_node_group(question->address);
    return question->to ? write_nd(*question->to, question->address, solicitation, out)
                        : write_nd(group_mac(group), group, solicitation, out);
}

std::size_t Host::write_arp(bool reply, const MacAddress& to, const IpAddress& target, Out out) noexcept {
    if (out.size() < kLeastFrameBytes) {
        return drop(Drop::NoBuffer);
    }
    std::fill_n(out.begin(), kLeastFrameBytes, std::uint8_t{0});
    emit_at(out.data(), EthernetHeader{to, config_.mac, kEtherTypeArp});
    ArpMessage arp;
    arp.operation = reply ? ArpOperation::Reply : ArpOperation::Request;
    arp.sender_mac = config_.mac;
    arp.sender_ip = config_.address;
    arp.target_mac = reply ? to : MacAddress{};
    arp.target_ip = target;
    emit_at(out.data() + kEthernet, arp);
    return kLeastFrameBytes;
}

std::size_t Host::write_nd(const MacAddress& to, const IpAddress& destination, NeighbourMessage message,
                           Out out) noexcept {
    if (out.size() < kQuestionBytes) {
        return drop(Drop::NoBuffer);
    }
    emit_at(out.data(), EthernetHeader{to, config_.mac, kEtherTypeIpv6});
    Ipv6Header ip;
    ip.payload_bytes = NeighbourMessage::kBytes;
    ip.next_header = kProtocolIcmpV6;
    ip.hop_limit = kNeighbourHopLimit;
    ip.source = config_.address;
    ip.destination = destination;
    emit_at(out.data() + kEthernet, ip);
    message.mac = config_.mac;
    const Out at = out.subspan(kEthernet + Ipv6Header::kBytes, NeighbourMessage::kBytes);
    emit_at(at.data(), message);
    ChecksumSum sum;
    sum.add_pseudo_header(ip.source, ip.destination, kProtocolIcmpV6, ip.payload_bytes);
    sum.add(at);
    message.checksum = sum.checksum();
    emit_at(at.data(), message);
    return kQuestionBytes;
}

}  // namespace cairn::net
