// Attacks below any protocol: garbage, packets for unknown queue pairs, packets with reserved numbers.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/hostile/attacks.hpp"

namespace cairn::hostile {

namespace {

constexpr std::size_t kJunkBytes = 1500;
constexpr unsigned kSenders = 8;

// Bytes of every length that are not RoCEv2 at all.
void junk(Attacker& attacker) {
    for (unsigned i = 0;; ++i) {
        Bytes bytes(1 + attacker.random_below(kJunkBytes));
        std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(attacker.random()); });
        if (!attacker.send_as_it_is(attacker.stranger(i % kSenders), bytes)) {
            return;
        }
    }
}

// Packets with correct ICRCs and every opcode, version and reserved bit, to any queue pair.
void reserved(Attacker& attacker) {
    for (unsigned i = 0;; ++i) {
        Bytes bytes(sizeof(wire::RawBth) + attacker.random_below(64) * 4 + wire::kIcrcBytes);
        std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(attacker.random()); });
        if (i % 2 == 0) {
            bytes[5] = 0;  // small numbers of queue pairs, such as those of management and of services
            bytes[6] = static_cast<std::uint8_t>(attacker.random_below(3));
        }
        if (i % 4 == 0) {
            bytes[1] = static_cast<std::uint8_t>(bytes[1] & 0xf0U);  // the only valid version
        }
        if (!attacker.send(attacker.bystander(i % kSenders), std::move(bytes))) {
            return;
        }
    }
}

// WRITEs and READs in the names of others, for connections that the sender does not have.
void guesses(Attacker& attacker) {
    std::array<std::uint8_t, 64> payload{};
    for (unsigned i = 0;; ++i) {
        wire::Packet packet(wire::Service::Rc, i % 2 == 0 ? wire::Operation::WriteOnly : wire::Operation::ReadRequest);
        wire::Bth bth;
        bth.dest_qpn = Qpn{static_cast<std::uint32_t>(attacker.random() & 0xffffffU)};
        bth.psn = Psn{static_cast<std::uint32_t>(attacker.random() & 0xffffffU)};
        bth.ack_request = true;
        packet.set_bth(bth);
        packet.set(wire::Reth{attacker.random(), Rkey{static_cast<std::uint32_t>(attacker.random())}, payload.size()});
        if (i % 2 == 0) {
            packet.set_payload(payload);
        }
        if (!attacker.send(attacker.bystander(i % kSenders), bytes_of(packet))) {
            return;
        }
    }
}

// One host with ever new UDP ports: each port makes a path of its own.
void ports(Attacker& attacker) {
    constexpr std::uint16_t kFirstPort = 20'000;
    constexpr std::uint16_t kPorts = 40'000;
    for (unsigned i = 0;; ++i) {
        Result<Host> host = attacker.stranger_from(0, static_cast<std::uint16_t>(kFirstPort + i % kPorts));
        const Bytes packet = datagram(Qpn{0x100}, Qkey{0x205}, Qpn{0x100}, std::array<std::uint8_t, 16>{});
        if (host.ok() && !attacker.send(host.value(), packet)) {
            return;
        }
        if (attacker.over()) {
            return;
        }
    }
}

constexpr std::array kPacketAttacks{
    Attack{"junk", junk, "bytes that are no packets"},
    Attack{"reserved", reserved, "right ICRCs over reserved numbers"},
    Attack{"guesses", guesses, "WRITEs and READs of connections of others"},
    Attack{"ports", ports, "datagrams from ever new UDP ports"},
};

}  // namespace

std::span<const Attack> attacks_on_packets() {
    return kPacketAttacks;
}

}  // namespace cairn::hostile
