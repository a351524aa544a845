// hostile: one attack on a Cairn program over UDP sockets of this machine.
//
//   hostile --attack NAME --target 127.90.0.1 --own 127.90.1.0 [--service N] [--seconds S] [--rate PPS] [--seed N]
//
// SIGTERM ends it earlier. Ends with one JSON object: counts of what was sent, how far it got, and what came to the
// hosts in whose names it was sent.
#include <arpa/inet.h>

#include <CLI/CLI.hpp>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/hostile/attacks.hpp"

namespace {

using namespace cairn::hostile;

constexpr std::chrono::milliseconds kLate{1500};  // copies of answers still come

std::array<std::span<const Attack>, 4> kinds() {
    return {attacks_on_packets(), attacks_on_sessions(), attacks_on_connections(), attacks_by_idle_sessions()};
}

const Attack* find_attack(const std::string& name) {
    for (const auto attacks : kinds()) {
        for (const Attack& attack : attacks) {
            if (name == attack.name) {
                return &attack;
            }
        }
    }
    return nullptr;
}

std::string all_attacks() {
    std::string text = "Attacks:\n";
    for (const auto attacks : kinds()) {
        for (const Attack& attack : attacks) {
            text += "  " + std::string(attack.name) + ": " + attack.what + '\n';
        }
    }
    return text;
}

void print(const Options& options, const Tally& tally) {
    std::printf(
        "{\"attack\": \"%s\", \"packets\": %llu, \"reached\": %llu, \"sent_bytes\": %llu, "
        "\"bystanders_sent_bytes\": %llu, \"bystanders_received_bytes\": %llu, \"worst_amplification\": %.3f}\n",
        options.attack.c_str(), static_cast<unsigned long long>(tally.packets),
        static_cast<unsigned long long>(tally.reached), static_cast<unsigned long long>(tally.sent_bytes),
        static_cast<unsigned long long>(tally.bystanders_sent_bytes),
        static_cast<unsigned long long>(tally.bystanders_received_bytes), tally.worst_amplification);
}

std::optional<sockaddr_in> parse_relay(const std::string& text) {
    const std::size_t colon = text.find(':');
    const cairn::Result<in_addr> address = parse_address(text.substr(0, colon));
    if (colon == std::string::npos || !address.ok()) {
        return std::nullopt;
    }
    sockaddr_in relay{};
    relay.sin_family = AF_INET;
    relay.sin_port = htons(static_cast<std::uint16_t>(std::atoi(text.c_str() + colon + 1)));
    relay.sin_addr = address.value();
    return relay;
}

int refuse(const std::string& why) {
    std::fprintf(stderr, "hostile: %s\n", why.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    std::string target;
    std::string own;
    std::string relay;
    CLI::App app("One attack on a Cairn program over UDP sockets.");
    app.footer(all_attacks());
    app.add_option("--attack", options.attack, "which")->required();
    app.add_option("--target", target, "address of the program")->required();
    app.add_option("--own", own, "the attacker's addresses: those that differ from it in the last number")->required();
    app.add_option("--service", options.service, "name of the service that is attacked, a port number");
    app.add_option("--seconds", options.seconds, "how long");
    app.add_option("--rate", options.rate_pps, "packets per second")->check(CLI::Range(1U, 10'000'000U));
    app.add_option("--seed", options.seed, "of all chance");
    app.add_option("--relay", relay,
                   "address and port of the relay to the link that the target is on, as 127.0.0.1:9000");
    app.add_option("--file", options.file, "of record and replay");
    CLI11_PARSE(app, argc, argv);

    const Attack* const attack = find_attack(options.attack);
    if (attack == nullptr) {
        return refuse(options.attack + " is no attack; see --help");
    }
    const cairn::Result<in_addr> at = parse_address(target);
    const cairn::Result<in_addr> from = parse_address(own);
    if (!at.ok() || !from.ok()) {
        return refuse((at.ok() ? from : at).error().text());
    }
    if (!relay.empty() && !(options.relay = parse_relay(relay))) {
        return refuse(relay + " is no relay; write it as 127.0.0.1:9000");
    }
    options.target = at.value();
    options.own = from.value();
    std::signal(SIGTERM, [](int) { stop_attacks(); });
    Attacker attacker(options);
    attack->run(attacker);
    print(options, attacker.finish(kLate));
    return 0;
}
