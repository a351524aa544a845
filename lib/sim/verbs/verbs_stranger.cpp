#include "lib/sim/verbs/verbs_stranger.hpp"

#include <algorithm>
#include <cstring>
#include <variant>

#include "lib/sim/verbs/verbs_end.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kFar = 1U << 20U;  // distance from a packet number that was seen: in no window
constexpr std::uint32_t kPsns = 1U << 24U;
constexpr std::uint32_t kNobodysKey = 0x80000000U;  // a random key of these; those of other scenarios are smaller
constexpr std::size_t kUserDataAt = 36;             // in the private data of a request for an IP service
constexpr std::size_t kLeastBytes = wire::Bth::kBytes + port::kIcrcBytes;
constexpr std::size_t kHeardMost = 16;
constexpr unsigned kServiceBits = 5;  // of an opcode, below its service

}  // namespace

void VerbsStranger::on_frame(const Frame& frame, bool forges, Instant now) {
    const bool whole = !frame.damaged && frame.bytes.size() >= frame.lower_bytes() + kLeastBytes;
    if (!whole || frame.source() == network_.address_of(node_) || frame.destination().is_group()) {
        return;
    }
    const bool is_connections = frame.udp_bytes()[0] >> kServiceBits == 0;
    if (!is_connections && frame.dest_qpn() == wire::kGeneralServicesQpn) {
        overhear(frame);
    }
    if (!forges) {
        return;
    }
    const std::uint64_t kind = random_.below(8);
    if (kind == 0 && is_connections) {
        forge_datagram(frame, now);
    } else if (kind <= 4 && is_connections) {
        forge_packet(frame, now);
    } else if (!heard_.empty()) {
        const Heard& heard = heard_[random_.below(heard_.size())];
        forge_message(heard.mad, heard.frame, now);
    }
}

// Remembers the last messages, and the queue pair of each end.
void VerbsStranger::overhear(const Frame& frame) {
    const std::span<const std::uint8_t> datagram = frame.udp_bytes();
    if (datagram.size() < sizeof(wire::RawUd) + wire::kMadBytes + port::kIcrcBytes) {
        return;
    }
    const auto parsed = wire::CmMad::parse(datagram.subspan(sizeof(wire::RawUd), wire::kMadBytes));
    if (!parsed.ok()) {
        return;
    }
    if (const auto* const req = std::get_if<wire::Req>(&parsed.value().message)) {
        qpns_[req->local_comm_id] = req->local_qpn;
    } else if (const auto* const rep = std::get_if<wire::Rep>(&parsed.value().message)) {
        qpns_[rep->ids.local] = rep->local_qpn;
    }
    heard_.push_back({frame, parsed.value()});
    if (heard_.size() > kHeardMost) {
        heard_.pop_front();
    }
}

// Sends another packet of the connection. Mostly it has a number that the peer does not expect, and at times the number
// of another queue pair. Otherwise it is the next packet, from the hostile peer's own address. Half of them have other
// contents.
void VerbsStranger::forge_packet(const Frame& seen, Instant now) {
    Bytes datagram(seen.udp_bytes().begin(), seen.udp_bytes().end());
    const bool copies = random_.chance(kMillion / 4);
    auto& bth = *reinterpret_cast<wire::RawBth*>(datagram.data());
    const auto away = static_cast<std::uint32_t>(copies ? random_.below(2) : random_.between(kFar, kPsns - kFar));
    bth.psn.set((bth.psn.get() + away) & (kPsns - 1));
    if (!copies && random_.chance(kMillion / 8)) {
        bth.dest_qpn.set(any() & (kPsns - 1));
    }
    if (random_.chance(kMillion / 2)) {
        std::for_each(datagram.begin() + wire::Bth::kBytes, datagram.end(),
                      [](std::uint8_t& octet) { octet = ~octet; });
    }
    ++(copies ? forgeries_.copies : forgeries_.packets);
    send(datagram, copies ? network_.address_of(node_) : seen.source(), seen, now);
}

// Sends a datagram to a queue pair of a connection.
void VerbsStranger::forge_datagram(const Frame& seen, Instant now) {
    wire::UdHeader said;
    said.to = seen.dest_qpn();
    said.qkey = Qkey{any() | kNobodysKey};
    said.from = Qpn{any() & (kPsns - 1)};
    Bytes datagram(sizeof(wire::RawUd) + port::kIcrcBytes);
    const wire::RawUd header = said.raw(0);
    std::memcpy(datagram.data(), &header, sizeof(header));
    ++forgeries_.datagrams;
    send(datagram, random_.chance(kMillion / 2) ? seen.source() : network_.address_of(node_), seen, now);
}

// Makes a request of its own, for a queue pair that is connected or not. Its private data has the serial of no end:
// users of the world must not take it for one of theirs.
void VerbsStranger::guess(wire::Req& request) {
    request.local_comm_id = wire::CommId{any()};
    if (random_.chance(kMillion / 2)) {
        request.local_qpn = Qpn{any() & (kPsns - 1)};
    }
    if (random_.chance(kMillion / 2)) {
        request.local_ca_guid = random_.next();
    }
}

// Chooses a message that would end the connection, perhaps in place of the one that was seen.
std::optional<wire::CmMessage> VerbsStranger::choose_end(const wire::CommIds& ids) {
    const auto known = qpns_.find(ids.remote);
    switch (random_.below(4)) {
        case 0:
            return wire::Dreq{ids, known != qpns_.end() ? known->second : Qpn{any() & (kPsns - 1)}, {}};
        case 1:
            return wire::Drep{ids, {}};
        case 2: {
            wire::Rej end;
            end.ids = ids;
            end.message = static_cast<wire::Answered>(random_.below(3));
            end.reason = wire::RejectReason::StaleConnection;
            return end;
        }
        default:
            return std::nullopt;
    }
}

void VerbsStranger::forge_message(wire::CmMad mad, const Frame& seen, Instant now) {
    const bool copies = random_.chance(kMillion / 3);
    std::optional<wire::CmMessage> replaced;
    std::visit(
        [&]<class Message>(Message& message) {
            if constexpr (std::is_same_v<Message, wire::Req>) {
                std::memcpy(message.private_data.data() + kUserDataAt, &kSerial, sizeof(kSerial));
                if (!copies) {
                    guess(message);
                }
            } else if constexpr (requires { message.ids; }) {
                message.ids = copies ? message.ids : wire::CommIds{wire::CommId{any()}, wire::CommId{any()}};
                replaced = choose_end(message.ids);
            }
        },
        mad.message);
    mad.message = replaced.value_or(mad.message);
    const wire::MadBytes bytes = mad.bytes();
    Bytes datagram(seen.udp_bytes().begin(), seen.udp_bytes().end());
    std::memcpy(datagram.data() + sizeof(wire::RawUd), bytes.data(), bytes.size());
    ++(copies ? forgeries_.copies : forgeries_.messages);
    send(datagram, copies ? network_.address_of(node_) : seen.source(), seen, now);
}

void VerbsStranger::send(const Bytes& datagram, const net::IpAddress& from, const Frame& seen, Instant now) {
    port::Path path({from, seen.destination(), seen.udp_source_port(), 0});
    path.resolve(Network::mac_of(node_), Network::mac_of(network_.node_of(seen.destination())));
    Frame made{Bytes(path.lower_bytes())};
    made.bytes.insert(made.bytes.end(), datagram.begin(), datagram.end());
    path.seal(made.bytes.data() + path.lower_bytes(), static_cast<std::uint16_t>(datagram.size()));
    network_.send(node_, std::move(made), now);
}

}  // namespace cairn::sim
