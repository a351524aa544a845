// Holds batches back for more messages: an option, since messages wait meanwhile.
//
// Short batches make short turns, and short turns make shorter batches: the same load has two stable rates (notes of
// the authors on bistable batching). An end that waits for a few messages more stays at the higher one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::copyrpc {

struct HoldConfig {
    std::uint32_t messages = 0;       // that a batch is to have; 0: nothing is held
    Duration most = microseconds(5);  // that a message waits; 1 ms at most
};

// Of a session. No clock, no I/O.
class BatchHold {
public:
    // So many messages wait for the next batch. Returns until when it is held; `now` or before: it is to leave. It is
    // held only if the messages that it lacks are likely to come in time, by the mean time between messages.
    // mutants: copyrpc-batch-hold-until
    [[nodiscard]] Instant until(const HoldConfig& config, std::uint32_t messages, Instant now) noexcept {
        if (!holds_) {
            holds_ = true;
            since_ = now;
        }
        const Duration mean = std::max(mean_, mean_after(now - last_));
        if (hurries_ || messages >= config.messages || mean * (config.messages - messages) > config.most) {
            return now;
        }
        return since_ + config.most;
    }
    // A batch of so many messages, one or more, leaves.
    // mutants: copyrpc-batch-hold-on-batch
    void on_batch(std::uint32_t messages, Instant now) noexcept {
        mean_ = mean_after(Duration{std::min((now - last_).ns, kLongest.ns) / messages});
        last_ = now;
        holds_ = hurries_ = false;
    }
    // The batch gets a message whose caller has a deadline. It is not held: the time that it has left is in it already.
    void hurry() noexcept { hurries_ = true; }

private:
    static constexpr Duration kLongest = milliseconds(1);
    // The mean with one time more between messages. A silence counts while it lasts.
    [[nodiscard]] Duration mean_after(Duration interval) const noexcept {
        return Duration{(mean_.ns * 7 + std::min(interval.ns, kLongest.ns)) / 8};
    }

    Duration mean_ = kLongest;  // between messages
    Instant last_{};            // batch
    Instant since_{};           // messages have waited
    bool holds_ = false;
    bool hurries_ = false;
};

}  // namespace cairn::copyrpc
