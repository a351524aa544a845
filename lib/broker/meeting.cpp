#include "lib/broker/meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/monotonic_clock.hpp"
#include "lib/broker/start.hpp"
#include "lib/broker/users.hpp"

namespace cairn::broker {

namespace {

constexpr Duration kPause = milliseconds(2);
constexpr Duration kPauseBehindStart = milliseconds(50);
constexpr Duration kPauseBehindWelcome = milliseconds(50);  // after a welcome in vain, which costs the address a slot
                                                            // for a while
constexpr Duration kStrangersPatience = seconds(2);
constexpr int kStarts = 3;
constexpr int kStartsToComeBack = 1;  // a program that comes back in vain looks again later

void pause(Duration span) noexcept {
    timespec left{span.ns / 1'000'000'000, span.ns % 1'000'000'000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

NoBroker ends_again_and_again() {
    return {"the broker ends again and again"};
}

NoBroker too_few_descriptors() {
    return {"this process has no descriptors left for the sockets; raise the limit of open files (ulimit -n)"};
}

// How many programs may still be started.
struct Starts {
    int left;
    Duration pause = kPause;  // after an attempt in vain; it doubles with each start
};

// Returns a descriptor of this process. By it the broker sees the end of the process even if others hold the
// connection.
OwnedFd own_process() noexcept {
    return OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
}

using Outcome = std::optional<Meeting>;  // nullopt: to be tried again

// Starts a broker. Returns nullopt if a process listens now, or is about to.
std::optional<NoBroker> start(const MeetingConfig& config, Starts& starts) {
    if (config.program.empty()) {
        return NoBroker{"there is no broker, and none is to be started"};
    }
    if (starts.left == 0) {
        return ends_again_and_again();
    }
    const OwnedFd listener = listen_at(config.place);
    if (!listener.is_open()) {
        if (errno == EADDRINUSE) {
            return std::nullopt;
        }
        return NoBroker{fmt::format("cannot make a unix socket: {}", std::strerror(errno))};
    }
    --starts.left;
    starts.pause = std::max(starts.pause * 2, kPauseBehindStart);
    const Status started = start_program(config.program, config.place, listener);
    return started.ok() ? std::nullopt : std::optional(NoBroker{started.error().text()});
}

Outcome receive_sockets(Welcome welcome, std::uint16_t count) {
    Packet packet;
    while (welcome.sockets.size() < count) {
        const Received got = receive_packet(welcome.connection.get(), packet, true);
        if (got == Received::NoDescriptor) {
            return too_few_descriptors();
        }
        if (got != Received::Packet) {
            pause(kPauseBehindWelcome);
            return std::nullopt;
        }
        const std::optional<Message> said = parse_message(packet.bytes);
        const Sockets* const sockets = said ? std::get_if<Sockets>(&*said) : nullptr;
        if (sockets == nullptr || packet.fds.size() != sockets->count) {
            return NoBroker{"what answers is no broker of this version"};
        }
        for (OwnedFd& fd : packet.fds) {
            welcome.sockets.push_back(std::move(fd));
        }
    }
    return welcome.sockets.size() == count ? Outcome(std::move(welcome)) : Outcome(NoBroker{"too many sockets came"});
}

Outcome hear_answer(OwnedFd connection) {
    Packet packet;
    switch (receive_packet(connection.get(), packet, true)) {
        case Received::Nothing:
            return NoBroker{"the broker does not answer"};
        case Received::NoDescriptor:
            return too_few_descriptors();
        case Received::End:
            return std::nullopt;
        case Received::Packet:
            break;
    }
    const std::optional<Message> said = parse_message(packet.bytes);
    if (const Refused* const refused = said ? std::get_if<Refused>(&*said) : nullptr) {
        return refused->why;
    }
    const Lent* const lent = said ? std::get_if<Lent>(&*said) : nullptr;
    if (lent == nullptr) {
        return NoBroker{"what answers is no broker of this version"};
    }
    return receive_sockets({std::move(connection), lent->slot, {}}, lent->sockets);
}

// Waits for the answer of another user's broker. If no program needs that broker, it ends, and frees the address; after
// any other answer it stays.
Outcome hear_stranger(OwnedFd connection) {
    Packet packet;
    const bool answers = await(connection.get(), POLLIN, read_monotonic() + kStrangersPatience);
    const bool ended = answers && receive_packet(connection.get(), packet, false) == Received::End;
    return ended ? std::nullopt : Outcome(Refusal::AnotherUser);
}

using Ask = std::function<bool(int connection)>;

Outcome try_to_meet(const MeetingConfig& config, const Ask& ask, Starts& starts) {
    OwnedFd connection = connect_to(config.place, config.patience);
    if (!connection.is_open()) {
        if (errno == EMFILE || errno == ENFILE) {
            return too_few_descriptors();
        }
        if (errno != ECONNREFUSED) {
            return NoBroker{fmt::format("cannot reach the broker: {}", std::strerror(errno))};
        }
        const std::optional<NoBroker> failed = start(config, starts);
        return failed ? Outcome(*failed) : std::nullopt;
    }
    if (!is_user(peer_of(connection.get()).uid, geteuid())) {
        return hear_stranger(std::move(connection));
    }
    return ask(connection.get()) ? hear_answer(std::move(connection)) : std::nullopt;
}

// Repeats the attempt, as a broker may end between the connection and the answer. So may a process that was about to
// start one.
// A broker that was just started is asked at once.
Meeting meet(const MeetingConfig& config, Starts starts, const Ask& ask) {
    if (!is_one_user(geteuid())) {
        return NoBroker{fmt::format("uid {} is any user's in this user namespace; run as another one", geteuid())};
    }
    const Instant until = read_monotonic() + config.patience;
    for (bool first = true; first || read_monotonic() < until; first = false) {
        const int left = starts.left;
        Outcome outcome = try_to_meet(config, ask, starts);
        if (outcome) {
            return std::move(*outcome);
        }
        if (!first && starts.left == left) {
            pause(starts.pause);
        }
    }
    return ends_again_and_again();
}

std::string name_of(const Peer& peer) {
    if (!is_one_user(peer.uid)) {
        return "another user";
    }
    std::array<char, 1024> room{};
    passwd entry{};
    passwd* found = nullptr;
    const bool named = getpwuid_r(peer.uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
    return named ? fmt::format("{} (uid {})", entry.pw_name, peer.uid) : fmt::format("uid {}", peer.uid);
}

}  // namespace

Meeting ask_for_slot(const MeetingConfig& config) {
    const OwnedFd process = own_process();
    const int fd = process.get();
    const std::span<const int> with = process.is_open() ? std::span(&fd, 1) : std::span<const int>();
    return meet(config, {kStarts}, [with](int connection) { return send_message(connection, Join{}, with, true); });
}

Meeting come_back(const MeetingConfig& config, Slot slot, std::span<const int> sockets) {
    const OwnedFd process = own_process();
    const int fd = process.get();
    const std::span<const int> with = process.is_open() ? std::span(&fd, 1) : std::span<const int>();
    return meet(config, {kStartsToComeBack}, [&](int connection) {
        const Rejoin said{slot, static_cast<std::uint16_t>(sockets.size())};
        return send_message(connection, said, with, true) && send_sockets(connection, sockets, true);
    });
}

Error explain(const Place& place, Refusal why) {
    switch (why) {
        case Refusal::AnotherUser: {
            const OwnedFd connection = connect_to(place, seconds(1));
            const Peer peer = connection.is_open() ? peer_of(connection.get()) : Peer{};
            return {fmt::format("UDP {} belongs to programs of {}: their broker is process {}", place.text(),
                                connection.is_open() ? name_of(peer) : "another user", peer.pid),
                    "use another address (CAIRN_DEVICES), such as 127.0.0.2"};
        }
        case Refusal::Full:
            return {fmt::format("{} programs use UDP {} already", kMostSockets - 1, place.text()),
                    "use another address (CAIRN_DEVICES), such as 127.0.0.2"};
        case Refusal::NoAnswer:
            return {fmt::format("a program that uses UDP {} does not answer", place.text()),
                    "ss -lunp names it: let it run on, or end it"};
        case Refusal::NoResources:
            return {fmt::format("the broker of UDP {} gets no further socket from the kernel", place.text()),
                    "raise the limit of open files (ulimit -n); in a sandbox allow SO_REUSEPORT and cBPF"};
        case Refusal::PortTaken:
            break;
    }
    return {fmt::format("UDP {} is taken", place.text()),
            "ss -lunp names the process: stop that, or use another address"};
}

}  // namespace cairn::broker
