// Attacks on eRPC servers: endless sessions, messages that are announced and never sent, unread answers.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/hostile/attacks.hpp"
#include "tests/hostile/erpc_client.hpp"

namespace cairn::hostile {

namespace {

constexpr std::array<std::uint8_t, kPacketBytes> kFull{};

struct Opened {
    Host* host;
    ErpcSession session;
};

// Opens as many sessions as are wanted or granted; of one host, or of many.
std::vector<Opened> open_sessions(Attacker& attacker, unsigned count, unsigned hosts) {
    std::vector<Opened> opened;
    const std::optional<ErpcService> service = resolve(attacker, attacker.stranger(0));
    unsigned refused = 0;
    for (unsigned i = 0; service && i < count && refused < 3 && !attacker.over(); ++i) {
        Host& host = attacker.stranger(i % hosts);
        const std::optional<ErpcSession> session =
            open_session(attacker, host, *service, static_cast<std::uint16_t>(i));
        refused = session ? 0 : refused + 1;
        if (session) {
            attacker.reached();
            opened.push_back({&host, *session});
        }
    }
    return opened;
}

// Keeps sessions alive and reads no answer, until the time is over.
void ping(Attacker& attacker, const std::vector<Opened>& opened) {
    for (std::size_t i = 0; !opened.empty(); ++i) {
        const Opened& one = opened[i % opened.size()];
        if (!attacker.send(*one.host, one.session.control(ControlType::Ping, i + 1))) {
            return;
        }
        if (i % 64 == 0) {
            attacker.drain();
        }
    }
}

// Sessions asked for in the names of others, and requests in them as if they were granted.
void connect_bystanders(Attacker& attacker) {
    const std::optional<ErpcService> service = resolve(attacker, attacker.stranger(0));
    for (unsigned i = 0; service; ++i) {
        Host& host = attacker.bystander(i % kHosts);
        const std::uint64_t token = attacker.random();
        if (!attacker.send(host, first_connect(*service, token, static_cast<std::uint16_t>(i)))) {
            return;
        }
        ErpcSession session;
        session.service = *service;
        session.remote = static_cast<std::uint16_t>(i % 64);
        session.first_request = attacker.random() & ~std::uint64_t{kSlots - 1};
        for (unsigned slot = 0; slot < 4; ++slot) {
            (void)attacker.send(host, session.request(slot, 0, 32, 0, std::span(kFull).first(32)));
        }
    }
}

// All the sessions that one address can get, kept for ever.
void hoard(Attacker& attacker) {
    ping(attacker, open_sessions(attacker, 40'000, 1));
}

// Requests of 16 MB are announced in every slot, by packets without a byte of them.
void announce(Attacker& attacker) {
    const std::vector<Opened> opened = open_sessions(attacker, 64, 1);
    for (unsigned turn = 0; !opened.empty(); ++turn) {
        for (const Opened& one : opened) {
            for (unsigned slot = 0; slot < kSlots; ++slot) {
                if (!attacker.send(*one.host, one.session.request(slot, turn, 0xffffff, 0, {}))) {
                    return;
                }
            }
        }
        attacker.drain();
    }
}

// Requests of 1 MB; only half of each is sent.
void half_sent(Attacker& attacker) {
    constexpr std::uint32_t kBytes = 1U << 20U;
    const std::vector<Opened> opened = open_sessions(attacker, 40, kHosts);
    for (const Opened& one : opened) {
        for (unsigned slot = 0; slot < kSlots; ++slot) {
            for (std::uint16_t packet = 0; packet < 16; ++packet) {
                if (!attacker.send(*one.host, one.session.request(slot, 0, kBytes, packet, kFull))) {
                    return;
                }
            }
        }
    }
    ping(attacker, opened);
}

// A request whose announcement finds no memory, in a slot that another message used before, and a late packet of that
// message.
void abandoned_slots(Attacker& attacker) {
    for (const Opened& one : open_sessions(attacker, 1000, kHosts)) {
        const std::span<const std::uint8_t> full(kFull);
        const std::array packets{
            one.session.request(0, 0, 5000, 0, full),     one.session.request(1, 0, 5000, 0, full),
            one.session.request(0, 1, 0xffffff, 0, full), one.session.request(0, 0, 5000, 1, full),
            one.session.request(0, 1, 0xffffff, 1, full), one.session.request(1, 0, 5000, 1, full)};
        for (const Bytes& packet : packets) {
            (void)attacker.send(*one.host, packet);
        }
        attacker.drain();
    }
}

// Packets of a correct client, with a few bits or bytes changed and a correct ICRC.
void mutate(Attacker& attacker) {
    const std::vector<Opened> opened = open_sessions(attacker, 16, kHosts);
    for (unsigned turn = 0; !opened.empty(); ++turn) {
        const Opened& one = opened[attacker.random_below(static_cast<std::uint32_t>(opened.size()))];
        const unsigned slot = attacker.random_below(kSlots);
        const std::uint32_t bytes = attacker.random_below(3) == 0 ? 5000 : 32;
        Bytes packet = attacker.random_below(8) == 0
                           ? one.session.control(static_cast<ControlType>(1 + attacker.random_below(8)))
                           : one.session.request(slot, attacker.random_below(4), bytes,
                                                 static_cast<std::uint16_t>(attacker.random_below(5)),
                                                 std::span(kFull).first(std::min(bytes, kPacketBytes)));
        constexpr std::size_t kErpcFirst = 20;
        for (unsigned change = attacker.random_below(4); change != 0; --change) {
            packet[kErpcFirst + attacker.random_below(52) % (packet.size() - kErpcFirst)] ^=
                static_cast<std::uint8_t>(1U << attacker.random_below(8));
        }
        if (!attacker.send(*one.host, std::move(packet))) {
            return;
        }
        if (turn % 64 == 0) {
            attacker.drain();
        }
    }
}

// Calls whose answers are never read: the kernel's buffers fill, numbers run on.
void slow_reader(Attacker& attacker) {
    const std::vector<Opened> opened = open_sessions(attacker, 64, kHosts);
    for (unsigned turn = 0; !opened.empty(); ++turn) {
        for (const Opened& one : opened) {
            for (unsigned slot = 0; slot < kSlots; ++slot) {
                if (!attacker.send(*one.host, one.session.request(slot, turn, 32, 0, std::span(kFull).first(32)))) {
                    return;
                }
            }
        }
    }
}

// Requests to end sessions, with guessed tokens.
void guessed_ends(Attacker& attacker) {
    const std::optional<ErpcService> service = resolve(attacker, attacker.stranger(0));
    for (unsigned i = 0; service; ++i) {
        ErpcSession session;
        session.service = *service;
        session.token = attacker.random();
        session.remote = static_cast<std::uint16_t>(i % 64);
        constexpr std::array kEnds{ControlType::Disconnect, ControlType::Disconnected, ControlType::Refused,
                                   ControlType::Pong};
        if (!attacker.send(attacker.bystander(i % kHosts), session.control(kEnds[i % kEnds.size()]))) {
            return;
        }
    }
}

void write_packet(std::ofstream& file, const Bytes& packet) {
    const auto bytes = static_cast<std::uint32_t>(packet.size());
    file.write(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    file.write(reinterpret_cast<const char*>(packet.data()), static_cast<std::streamsize>(packet.size()));
}

// Opens a session and makes calls; all packets that it sends are written to a file.
void record(Attacker& attacker) {
    std::ofstream file(attacker.options().file, std::ios::binary);
    for (const Opened& one : open_sessions(attacker, 1, 1)) {
        write_packet(file, first_connect(one.session.service, one.session.token, one.session.local));
        write_packet(file,
                     second_connect(one.session.service, one.session.token, one.session.local, one.session.cookie));
        for (unsigned turn = 0; turn < 16; ++turn) {
            const Bytes packet = one.session.request(turn % kSlots, turn / kSlots, 32, 0, std::span(kFull).first(32));
            write_packet(file, packet);
            (void)attacker.send(*one.host, packet);
            if (!attacker.await(*one.host).empty()) {
                attacker.reached();
            }
        }
    }
}

// Sends all recorded packets again, over and over, to a server that was restarted.
void replay(Attacker& attacker) {
    std::ifstream file(attacker.options().file, std::ios::binary);
    std::vector<Bytes> packets;
    for (std::uint32_t bytes = 0; file.read(reinterpret_cast<char*>(&bytes), sizeof(bytes));) {
        packets.emplace_back(bytes);
        file.read(reinterpret_cast<char*>(packets.back().data()), bytes);
    }
    for (std::size_t i = 0; !packets.empty(); ++i) {
        if (!attacker.send(attacker.stranger(0), packets[i % packets.size()])) {
            return;
        }
    }
}

constexpr std::array kSessionAttacks{
    Attack{"connect-bystanders", connect_bystanders, "sessions and blind requests in the names of others"},
    Attack{"hoard", hoard, "all sessions that one address can get"},
    Attack{"announce", announce, "requests of 16 MB that never come"},
    Attack{"half-sent", half_sent, "requests of 1 MB, half of each"},
    Attack{"abandoned-slots", abandoned_slots, "requests that overtake one another in their slots"},
    Attack{"mutate", mutate, "a client's packets with bits changed"},
    Attack{"slow-reader", slow_reader, "calls whose answers nobody reads"},
    Attack{"guessed-ends", guessed_ends, "ends of sessions with guessed tokens"},
    Attack{"record", record, "a session of the attacker's, kept in --file"},
    Attack{"replay", replay, "the packets of --file again and again"},
};

}  // namespace

std::span<const Attack> attacks_on_sessions() {
    return kSessionAttacks;
}

}  // namespace cairn::hostile
