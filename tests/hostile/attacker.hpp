// What every attack has: addresses, a pace, chance from a seed, and the tally in the end.
//
// Strangers are addresses of the attacker that take part: they read what comes to them. Bystanders take no part:
// packets are sent in their names, what comes to them is counted and never answered.
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
    std::optional<sockaddr_in> relay;  // through which the target is reached
    std::string file;                  // what `record` writes and `replay` reads
};

struct Tally {
    std::uint64_t packets = 0;
    std::uint64_t reached = 0;  // answers that say that the attack got where it wanted to: sessions, REPs, ...
    std::uint64_t sent_bytes = 0;
    std::uint64_t bystanders_sent_bytes = 0;  // in their names
    std::uint64_t bystanders_received_bytes = 0;
    double worst_amplification = 0;  // of one bystander
};

// Any attacker's time is over. May be called in a signal handler.
void stop_attacks() noexcept;

class Attacker {
public:
    explicit Attacker(const Options& options);

    // Made when they are asked for first; a stop of the program when the address cannot be had.
    [[nodiscard]] Host& stranger(unsigned index);   // [0, 100)
    [[nodiscard]] Host& bystander(unsigned index);  // [0, 100)

    // A host of the stranger's address that sends from another UDP port.
    [[nodiscard]] Result<Host> stranger_from(unsigned index, std::uint16_t port);

    // Sends with a right ICRC, at the pace. False: the time is over, nothing was sent.
    bool send(Host& host, Bytes packet);
    // The same as the bytes are, ICRC and all.
    bool send_as_it_is(Host& host, const Bytes& packet);
    // Waits for a datagram of the target, for as long as the network may take; empty: none came.
    [[nodiscard]] Bytes await(Host& host, std::chrono::milliseconds patience = std::chrono::milliseconds(200));
    // Reads and throws away what came to all strangers; what came to bystanders is counted.
    void drain();

    [[nodiscard]] bool over() const;
    [[nodiscard]] std::uint64_t random() { return chance_(); }
    [[nodiscard]] std::uint32_t random_below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(chance_() % bound);
    }
    [[nodiscard]] const Options& options() const noexcept { return options_; }
    void reached() noexcept { ++tally_.reached; }

    // Once: listens for what comes late to bystanders, too.
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
