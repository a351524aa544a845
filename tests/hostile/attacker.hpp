// The common parts of every attack: addresses, a pace, chance from a seed, and the tally at the end.
//
// Strangers are addresses of the attacker that take part: they read their packets. Bystanders take no part: packets are
// sent in their names, and packets to them are counted and never answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/hostile/host.hpp"
#include "tests/hostile/packets.hpp"

namespace cairn::hostile {

struct Options {
    std::string attack;
    in_addr target{};
    in_addr own{};  // the first of 256 addresses
    std::uint16_t service = 0;
    double seconds = 1;
    unsigned rate_pps = 5000;
    std::uint64_t seed = 1;
    std::optional<sockaddr_in> relay;  // the target is reached through it
    std::string file;                  // the file that `record` writes and `replay` reads
};

struct Tally {
    std::uint64_t packets = 0;
    std::uint64_t reached = 0;  // answers that show success of the attack: sessions, REPs, ...
    std::uint64_t sent_bytes = 0;
    std::uint64_t bystanders_sent_bytes = 0;  // sent in their names
    std::uint64_t bystanders_received_bytes = 0;
    double worst_amplification = 0;  // of one bystander
};

// Ends the time of every attacker. May be called in a signal handler.
void stop_attacks() noexcept;

class Attacker {
public:
    explicit Attacker(const Options& options);

    // Both make a host when it is first asked for, and end the program if its address cannot be had.
    [[nodiscard]] Host& stranger(unsigned index);   // [0, 100)
    [[nodiscard]] Host& bystander(unsigned index);  // [0, 100)

    // Makes a host of the stranger's address that sends from another UDP port.
    [[nodiscard]] Result<Host> stranger_from(unsigned index, std::uint16_t port);

    // Sends with a correct ICRC, at the pace. Returns false if the time is over; nothing was sent then.
    bool send(Host& host, Bytes packet);
    // As send(), but sends the bytes as they are, with their ICRC.
    bool send_as_it_is(Host& host, const Bytes& packet);
    // Waits for a datagram of the target, for as long as the network may take. Returns no bytes if none came.
    [[nodiscard]] Bytes await(Host& host, std::chrono::milliseconds patience = std::chrono::milliseconds(200));
    // Reads and drops the packets to all strangers, and counts those to bystanders.
    void drain();

    [[nodiscard]] bool over() const;
    [[nodiscard]] std::uint64_t random() { return chance_(); }
    [[nodiscard]] std::uint32_t random_below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(chance_() % bound);
    }
    [[nodiscard]] const Options& options() const noexcept { return options_; }
    void reached() noexcept { ++tally_.reached; }

    // Ends the attack and returns its tally. Called once. Also listens for late packets to bystanders.
    [[nodiscard]] Tally finish(std::chrono::milliseconds late);

private:
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] bool wait_for_turn();
    [[nodiscard]] Host& host(std::map<unsigned, Host>& among, unsigned index, unsigned first);

    Options options_;
    std::mt19937_64 chance_;
    Clock::time_point began_ = Clock::now();
    std::map<unsigned, Host> strangers_;
    std::map<unsigned, Host> bystanders_;
    Tally tally_;
};

}  // namespace cairn::hostile
