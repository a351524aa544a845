// Attacks at the daemon's socket.
#include <sys/socket.h>

#include <array>
#include <deque>
#include <thread>

#include "tests/hostile/fs/guest.hpp"

namespace cairn::hostile {

namespace {

void nap(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Keeps opening connections that say nothing. The daemon keeps few of them.
void be_silent(FsAttacker& attacker) {
    std::deque<FsGuest> silent;
    while (!attacker.is_over()) {
        silent.emplace_back(attacker);
        if (silent.size() > 200) {
            silent.pop_front();
        }
        if (silent.size() % 16 == 0) {
            nap(1);
        }
    }
}

// Sends Hellos that are cut short, too long, of another version, empty or doubled, and random bytes.
void stammer(FsAttacker& attacker) {
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        std::vector<std::uint8_t> bytes = fs::bytes_of(fs::Hello{attacker.chance()});
        switch (attacker.below(6)) {
            case 0:
                bytes.resize(attacker.below(bytes.size()));
                break;
            case 1:
                bytes.resize(attacker.below(2 * fs::kMostHelloBytes));
                break;
            case 2:
                bytes[attacker.below(bytes.size())] ^= static_cast<std::uint8_t>(1 + attacker.below(255));
                break;
            case 3:
                (void)guest.meet(attacker.chance());  // a second Hello
                break;
            case 4:
                bytes = fs::bytes_of(fs::ChannelRequest{static_cast<std::uint16_t>(attacker.chance())});
                break;
            default:
                break;
        }
        for (std::uint64_t i = attacker.below(100); i != 0 && guest.send(bytes); --i) {
        }
        if (attacker.below(2) == 0 && guest.is_connected()) {
            ::shutdown(guest.fd(), attacker.below(2) == 0 ? SHUT_RD : SHUT_WR);
        }
    }
}

// Connects as many clients as there may be, with all channels that they may have, and then asks for one more of
// everything. A busy machine has the time until then.
void hoard(FsAttacker& attacker) {
    std::deque<FsGuest> guests;
    std::deque<FsChannel> channels;
    const auto patience = attacker.until + std::chrono::seconds(40);
    while (!attacker.is_over() ||
           (attacker.tally.last_refusal.empty() && std::chrono::steady_clock::now() < patience)) {
        FsGuest& guest = guests.emplace_back(attacker);
        if (!guest.meet()) {
            guests.pop_back();
            nap(10);
            continue;
        }
        for (const std::uint16_t shard : guest.welcome().local) {
            for (int i = 0; i != 16; ++i) {
                if (auto channel = guest.channel(shard)) {
                    channels.push_back(std::move(*channel));
                }
            }
        }
    }
}

// Comes, asks for channels, and goes: before the answer, after it, or with calls under way.
void flicker(FsAttacker& attacker) {
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        if (attacker.below(4) == 0) {
            (void)guest.send(fs::bytes_of(fs::Hello{}));
            continue;
        }
        if (!guest.meet()) {
            continue;
        }
        const auto& local = guest.welcome().local;
        for (std::uint64_t i = attacker.below(4); i != 0; --i) {
            (void)guest.channel(local[attacker.below(local.size())]);
        }
        (void)guest.send(fs::bytes_of(fs::ChannelRequest{local[0]}));
    }
}

// Takes none of the descriptors that it asks for, and then sends nonsense.
void leave_unread(FsAttacker& attacker) {
    std::deque<FsGuest> guests;
    while (!attacker.is_over()) {
        FsGuest& guest = guests.emplace_back(attacker);
        if (guest.meet()) {
            for (int i = 0; i != 18; ++i) {
                (void)guest.send(fs::bytes_of(fs::ChannelRequest{guest.welcome().local[0]}));
            }
        }
        nap(5);
        if (guests.size() > 100) {
            guests.pop_front();
        }
    }
}

// A connection whose end waits for a minute, since its data is not read: the process that closes it last waits.
struct Lingering {
    OwnedFd listening;
    OwnedFd far;
    OwnedFd near;
};

// Makes unread data end at once.
void stop_lingering(const Lingering& one) {
    const struct linger none { 0, 0 };
    ::setsockopt(one.near.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

Lingering linger() {
    Lingering made{OwnedFd(::socket(AF_INET, SOCK_STREAM, 0)), OwnedFd(), OwnedFd(::socket(AF_INET, SOCK_STREAM, 0))};
    sockaddr address{};
    socklen_t bytes = sizeof(address);
    ::listen(made.listening.get(), 1);  // any address
    ::getsockname(made.listening.get(), &address, &bytes);
    ::connect(made.near.get(), &address, bytes);
    made.far = OwnedFd(::accept(made.listening.get(), nullptr, nullptr));
    const std::array<char, 65536> filling{};
    while (::send(made.near.get(), filling.data(), filling.size(), MSG_DONTWAIT) > 0) {
    }
    const struct linger minute { 1, 60 };
    ::setsockopt(made.near.get(), SOL_SOCKET, SO_LINGER, &minute, sizeof(minute));
    return made;
}

// Hands over unrequested descriptors: many, the connection's own, and some that take long to close.
void hand_over(FsAttacker& attacker) {
    std::vector<Lingering> kept;
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        const bool is_met = attacker.below(2) == 0 && guest.meet();
        const auto bytes = is_met ? fs::bytes_of(fs::ChannelRequest{0}) : fs::bytes_of(fs::Hello{});
        if (kept.size() < 20) {
            kept.push_back(linger());
            const int fd = kept.back().near.get();
            if (guest.send(bytes, std::array{fd})) {
                kept.back().near = OwnedFd();  // the daemon now has the last descriptor of it
            } else {
                stop_lingering(kept.back());
            }
        }
        const std::vector<int> many(1 + attacker.below(250), guest.fd());
        (void)guest.send(bytes, many);
        (void)guest.send(bytes);
        nap(1);
    }
}

constexpr std::array kOnSocket{
    FsAttack{"silent", be_silent, "connections that say nothing, more than anybody keeps"},
    FsAttack{"stammer", stammer, "broken greetings, and what comes at the wrong time"},
    FsAttack{"hoard", hoard, "all clients and channels that there may be"},
    FsAttack{"flicker", flicker, "clients that come and go at any time"},
    FsAttack{"unread", leave_unread, "clients that do not take their channels"},
    FsAttack{"descriptors", hand_over, "descriptors that nobody has asked for"},
};

}  // namespace

std::span<const FsAttack> attacks_on_socket() {
    return kOnSocket;
}

}  // namespace cairn::hostile
