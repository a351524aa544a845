#include "tests/hostile/attacker.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace cairn::hostile {

namespace {

constexpr unsigned kFirstStranger = 1;
constexpr unsigned kFirstBystander = 101;
constexpr unsigned kEach = 100;
constexpr std::size_t kLongest = 8192;

std::atomic<bool> stopped{false};

in_addr nth_of(in_addr first, unsigned offset) {
    return {htonl((ntohl(first.s_addr) & 0xffffff00U) | offset)};
}

}  // namespace

void stop_attacks() noexcept {
    stopped.store(true, std::memory_order_relaxed);
}

Attacker::Attacker(const Options& options) : options_(options), chance_(options.seed) {}

Host& Attacker::host(std::map<unsigned, Host>& among, unsigned index, unsigned first) {
    const auto known = among.find(index);
    if (known != among.end()) {
        return known->second;
    }
    Result<Host> made = Host::open(nth_of(options_.own, first + index % kEach), kRocePort, options_.relay);
    if (!made.ok()) {
        std::fprintf(stderr, "hostile: %s\n", made.error().text().c_str());
        std::exit(2);
    }
    return among.emplace(index, std::move(made).value()).first->second;
}

Host& Attacker::stranger(unsigned index) {
    return host(strangers_, index, kFirstStranger);
}

Host& Attacker::bystander(unsigned index) {
    return host(bystanders_, index, kFirstBystander);
}

Result<Host> Attacker::stranger_from(unsigned index, std::uint16_t port) {
    return Host::open(nth_of(options_.own, kFirstStranger + index % kEach), port, options_.relay);
}

bool Attacker::over() const {
    return stopped.load(std::memory_order_relaxed) ||
           Clock::now() - began_ >= std::chrono::duration<double>(options_.seconds);
}

bool Attacker::wait_for_turn() {
    const auto turn = began_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                   static_cast<double>(tally_.packets) / options_.rate_pps));
    // A millisecond's packets go at once: a sleep per packet would take a core.
    if (turn > Clock::now() + std::chrono::milliseconds(1)) {
        std::this_thread::sleep_until(turn);
    }
    ++tally_.packets;
    return !over();
}

bool Attacker::send(Host& host, Bytes packet) {
    if (!wait_for_turn()) {
        return false;
    }
    host.send(options_.target, packet);
    return true;
}

bool Attacker::send_as_it_is(Host& host, const Bytes& packet) {
    if (!wait_for_turn()) {
        return false;
    }
    host.send_as_it_is(options_.target, packet);
    return true;
}

Bytes Attacker::await(Host& host, std::chrono::milliseconds patience) {
    Bytes room(kLongest);
    const auto until = Clock::now() + patience;
    do {
        const std::size_t bytes = host.receive(room);
        if (bytes != 0) {
            room.resize(bytes);
            return room;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    } while (Clock::now() < until);
    return {};
}

void Attacker::drain() {
    for (auto& [index, host] : strangers_) {
        host.drain();
    }
    for (auto& [index, host] : bystanders_) {
        host.drain();
    }
}

Tally Attacker::finish(std::chrono::milliseconds late) {
    const auto until = Clock::now() + late;
    while (!bystanders_.empty() && Clock::now() < until) {
        drain();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    drain();
    for (const auto& [index, host] : strangers_) {
        tally_.sent_bytes += host.sent_bytes();
    }
    for (const auto& [index, host] : bystanders_) {
        tally_.sent_bytes += host.sent_bytes();
        tally_.bystanders_sent_bytes += host.sent_bytes();
        tally_.bystanders_received_bytes += host.received_bytes();
        if (host.sent_bytes() != 0) {
            tally_.worst_amplification =
                std::max(tally_.worst_amplification,
                         static_cast<double>(host.received_bytes()) / static_cast<double>(host.sent_bytes()));
        }
    }
    return tally_;
}

}  // namespace cairn::hostile
