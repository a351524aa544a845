// Generator: lets an emitter send packets through a port at a given rate, and counts the packets that come back. One
// worker drives it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/port/port.hpp"
#include "lib/telemetry/counters.hpp"
#include "lib/worker/loop.hpp"

namespace cairn::pmd {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_GENERATOR_COUNTERS(X)                                                      \
    X(Sent, "sent", "packets given to the port")                                         \
    X(Refused, "refused", "times the port took less than was due: the rate is too high") \
    X(Returned, "returned", "RoCEv2 datagrams that came back")                           \
    X(ReturnedBytes, "returned_bytes", "their UDP payload bytes")                        \
    X(ReturnedBroken, "returned_broken", "of these with a wrong ICRC")

CAIRN_DECLARE_COUNTERS(GeneratorCounter, CAIRN_GENERATOR_COUNTERS);

// Makes packets. The implementation knows the kind of port.
class Emitter {
public:
    virtual ~Emitter() = default;
    // Makes the packets `first`, `first` + 1 ... and sends them along the path. Returns how many of `count` the port
    // took.
    [[nodiscard]] virtual std::size_t emit(port::Path& path, std::uint64_t first, std::size_t count,
                                           Instant now) noexcept = 0;
};

struct GeneratorConfig {
    port::PathKey path{};
    double rate_pps = 1000;
    std::uint64_t count = 0;              // packets; 0: until stopped
    Duration linger = milliseconds(500);  // turns without an answer after the last packet
    Duration give_up = seconds(5);        // wait for a neighbour that does not answer
};

class Generator final : public worker::Task {
public:
    // Keeps the port, which outlives the generator.
    Generator(const GeneratorConfig& config, port::Port& port, Emitter& emitter);
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;
    ~Generator() override;

    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    [[nodiscard]] bool can_wait() const noexcept override { return !port_.limits().poll_only; }
    void wait(Instant now) noexcept override;

    [[nodiscard]] const telemetry::CounterSet<GeneratorCounter>& counters() const noexcept { return counters_; }
    // Returns the time from the first to the last packet.
    [[nodiscard]] double seconds_sending() const noexcept;
    [[nodiscard]] bool neighbour_answered() const noexcept { return path_ != nullptr && path_->resolved(); }

private:
    [[nodiscard]] bool send_due(Instant now) noexcept;
    [[nodiscard]] bool receive(Instant now) noexcept;

    void linger(Instant now, bool received) noexcept;
    [[nodiscard]] bool all_sent() const noexcept { return config_.count != 0 && serial_ == config_.count; }

    static constexpr std::size_t kBurst = 64;
    GeneratorConfig config_;
    port::Port& port_;
    Emitter& emitter_;
    port::Path* path_ = nullptr;
    Instant opened_{};
    Instant first_sent_{};
    Instant last_sent_{};
    Instant last_turn_{};
    Duration lingered_{};
    std::uint64_t serial_ = 0;
    std::array<port::PacketRef, kBurst> burst_{};
    telemetry::CounterSet<GeneratorCounter> counters_;
};

}  // namespace cairn::pmd
