// The result of the calls of a load: counts, and latencies within the measured time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/time.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::rpcbench {

class Measurement {
public:
    // Begins the measurement. Calls that complete before `measured_from` are completed, but not measured.
    void begin(Instant measured_from) noexcept { from_ = measured_from; }
    // Sets the time. Called each turn, and when calls complete.
    void keep_time(Instant now) noexcept { now_ = now; }
    [[nodiscard]] Instant now() const noexcept { return now_; }
    // Ends the measured time. Calls under way may still complete, and their latencies count.
    void end(Instant now, std::uint64_t not_begun) noexcept {
        to_ = now;
        measured_ = latency_ns_.count();
        not_begun_ = not_begun;
    }
    void add_completed(Duration latency) noexcept {
        ++completed_;
        if (now_ >= from_) {
            latency_ns_.record(static_cast<std::uint64_t>(latency.ns));
        }
    }
    void add_failed() noexcept { ++failed_; }
    void add_checked() noexcept { ++checked_; }
    void add_unfinished(std::uint64_t calls) noexcept { unfinished_ += calls; }
    // Notes why the load cannot go on. The first reason counts.
    void fail(std::string why) {
        if (failure_.empty()) {
            failure_ = std::move(why);
        }
    }

    // Returns why the load cannot go on; empty if it can.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }
    [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
    [[nodiscard]] std::uint64_t checked() const noexcept { return checked_; }
    [[nodiscard]] std::uint64_t unfinished() const noexcept { return unfinished_; }
    [[nodiscard]] std::uint64_t not_begun() const noexcept { return not_begun_; }  // due, but without room
    // These are of the measured time so far:
    [[nodiscard]] double rate_mops() const noexcept {
        const std::uint64_t measured = to_ == Instant::never() ? latency_ns_.count() : measured_;
        return seconds() > 0 ? static_cast<double>(measured) / seconds() / 1e6 : 0.0;
    }
    [[nodiscard]] double seconds() const noexcept {
        const Instant to = std::min(to_, now_);
        return to > from_ ? static_cast<double>((to - from_).ns) / 1e9 : 0.0;
    }
    [[nodiscard]] const telemetry::Histogram& latency_ns() const noexcept { return latency_ns_; }

private:
    Instant now_{};
    Instant from_ = Instant::never();
    Instant to_ = Instant::never();
    std::uint64_t completed_ = 0;
    std::uint64_t measured_ = 0;  // of these, in the measured time
    std::uint64_t failed_ = 0;
    std::uint64_t checked_ = 0;
    std::uint64_t unfinished_ = 0;
    std::uint64_t not_begun_ = 0;
    telemetry::Histogram latency_ns_;
    std::string failure_;
};

}  // namespace cairn::rpcbench
