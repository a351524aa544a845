// Runs histories in several threads, each with a world of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "apps/sim/options.hpp"
#include "apps/sim/report.hpp"

namespace cairn::simulate {

// Makes no further history begin. Safe in a signal handler.
void request_stop() noexcept;
[[nodiscard]] bool stop_requested() noexcept;

class Swarm {
public:
    // The number of broken histories after which no further one begins: each leaves a file of frames.
    static constexpr std::size_t kFailuresEnough = 10;

    explicit Swarm(const Options& options) noexcept : options_(options) {}

    // Runs until the seeds or the minutes are over, a stop is requested, or enough have failed. Prints a line of
    // progress each second on stderr.
    [[nodiscard]] Tally run();

private:
    using Clock = std::chrono::steady_clock;

    void work();
    [[nodiscard]] std::optional<std::uint64_t> next_seed();
    void live_through(std::uint64_t seed);
    void watch();

    const Options& options_;
    Clock::time_point started_{};
    std::atomic<std::uint64_t> begun_{0};
    std::mutex guard_;  // guards all below
    std::condition_variable ended_;
    unsigned working_ = 0;
    Tally tally_;
};

}  // namespace cairn::simulate
