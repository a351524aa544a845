// cairn-broker: lends the sockets of one UDP address to the programs of one user. The drop-in libraries start it, and
// it ends when no program needs it any more.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "lib/broker/ask_counters.hpp"
#include "lib/broker/server.hpp"

namespace {

using namespace cairn;

constexpr int kUsage = 2;
constexpr const char* kHelp =
    "cairn-broker ADDRESS [--udp-port=N] [--listener=FD | --counters]\n"
    "\n"
    "Lends the sockets of a UDP address to the programs of this user. libibverbs.so.1 starts it when it opens the "
    "first\n"
    "device of the address. It ends two seconds after its last program, or once another user wants the address then.\n"
    "\n"
    "  --udp-port=N   the port of the address (4791)\n"
    "  --listener=FD  a socket that listens at the address's meeting place already\n"
    "  --counters     prints what the broker that runs has counted, and ends\n";

volatile std::sig_atomic_t ends = 0;

void end_soon(int) {
    ends = 1;
}

struct Arguments {
    broker::Place place{};
    int listener = -1;
    bool looks = false;
};

std::optional<int> number_behind(std::string_view argument, std::string_view option, int most) {
    if (argument.substr(0, option.size()) != option) {
        return std::nullopt;
    }
    argument.remove_prefix(option.size());
    int value = 0;
    const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
    const bool sound = error == std::errc() && end == argument.data() + argument.size() && value > 0 && value <= most;
    return sound ? std::optional(value) : std::nullopt;
}

Result<Arguments> read_arguments(int argc, char** argv) {
    Arguments read;
    bool named = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (const auto port = number_behind(argument, "--udp-port=", 0xffff)) {
            read.place.udp_port = static_cast<std::uint16_t>(*port);
        } else if (const auto fd = number_behind(argument, "--listener=", 1 << 20)) {
            read.listener = *fd;
        } else if (argument == "--counters") {
            read.looks = true;
        } else if (auto address = net::IpAddress::parse(argument); address.ok() && !named) {
            read.place.local = address.value();
            named = true;
        } else {
            return Error{"'" + std::string(argument) + "' is no address and no option",
                         "cairn-broker --help lists them"};
        }
    }
    return named ? Result<Arguments>(read) : Error{"no address is given", "cairn-broker --help lists the arguments"};
}

// Raises the limit of descriptors. Each program takes two, and each socket one.
void raise_limits() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void expect_signals() {
    struct sigaction action {};
    action.sa_handler = end_soon;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
}

Status print_counters(const broker::Place& place) {
    const auto counted = broker::ask_for_counters(place, seconds(5));
    if (!counted.ok()) {
        return counted.error();
    }
    std::fputs(telemetry::text_of(counted.value()).c_str(), stdout);
    return Nothing{};
}

Status run(const Arguments& given) {
    OwnedFd listener(given.listener);
    if (listener.is_open()) {
        fcntl(listener.get(), F_SETFD, FD_CLOEXEC);
        listen(listener.get(), SOMAXCONN);  // from now on the kernel names this process as the listener
    } else {
        listener = broker::listen_at(given.place);
    }
    if (!listener.is_open()) {
        return Error{"cannot listen for programs of UDP " + given.place.text() + ": " + std::strerror(errno),
                     "another broker is there, perhaps of another user"};
    }
    auto server = broker::Server::make(given.place, std::move(listener), {}, geteuid());
    if (!server.ok()) {
        return server.error();
    }
    server.value()->run([] { return ends != 0; });
    return Nothing{};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--help") {
        std::fputs(kHelp, stdout);
        return 0;
    }
    const Result<Arguments> given = read_arguments(argc, argv);
    Status ran = given.ok() ? Status(Nothing{}) : Status(given.error());
    if (ran.ok() && given.value().looks) {
        ran = print_counters(given.value().place);
    } else if (ran.ok()) {
        raise_limits();
        expect_signals();
        static_cast<void>(chdir("/"));
        ran = run(given.value());
    }
    if (!ran.ok()) {
        std::fprintf(stderr, "cairn-broker: %s\n", ran.error().text().c_str());
        return kUsage;
    }
    return 0;
}
