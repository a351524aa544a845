// Generator: sends the frames that a source makes at a given rate through a port's device, and counts what comes
// back. One worker.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/telemetry/counters.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/worker.hpp"

namespace cairn::pmd {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_GENERATOR_COUNTERS(X)                                                 \
    X(Sent, "sent", "frames given to the device")                                   \
    X(Refused, "refused", "times the transmit ring was full: the rate is too high") \
    X(Returned, "returned", "RoCEv2 datagrams that came back")                      \
    X(ReturnedBytes, "returned_bytes", "their UDP payload bytes")                   \
    X(ReturnedBroken, "returned_broken", "of these with a wrong ICRC")

CAIRN_DECLARE_COUNTERS(GeneratorCounter, CAIRN_GENERATOR_COUNTERS);

// Whoever makes frames.
class FrameSource {
public:
    virtual ~FrameSource() = default;
    // Writes frame `serial` into `out`; returns its size.
    [[nodiscard]] virtual std::size_t make(port::Path& path, std::uint64_t serial, std::span<std::uint8_t> out) = 0;
};

struct GeneratorConfig {
    port::PathKey path{};
    double rate_pps = 1000;
    std::uint64_t count = 0;              // frames; 0: until stopped
    Duration linger = milliseconds(500);  // waiting for what comes back after the last frame
    Duration give_up = seconds(5);        // on a neighbour that does not answer
};

class Generator final : public WorkerTask {
public:
    Generator(const GeneratorConfig& config, EthdevPort& port, FrameSource& source);

    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;

    [[nodiscard]] const telemetry::CounterSet<GeneratorCounter>& counters() const noexcept { return counters_; }
    // Of sending, from the first to the last frame.
    [[nodiscard]] double seconds_sending() const noexcept;
    [[nodiscard]] bool neighbour_answered() const noexcept { return path_ != nullptr && path_->resolved(); }

private:
    [[nodiscard]] bool send_due(Instant now) noexcept;
    [[nodiscard]] bool receive(Instant now) noexcept;

    static constexpr std::size_t kBurst = 32;
    GeneratorConfig config_;
    EthdevPort& port_;
    FrameSource& source_;
    port::Path* path_ = nullptr;
    Instant opened_{};
    Instant first_sent_{};
    Instant last_sent_{};
    std::uint64_t serial_ = 0;
    std::array<port::PacketRef, kBurst> burst_{};
    telemetry::CounterSet<GeneratorCounter> counters_;
};

}  // namespace cairn::pmd
