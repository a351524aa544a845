// Holds batches back for more messages. This is an option, since messages wait meanwhile.
//
// Short batches make short turns, and short turns make shorter batches. So the same load has two stable rates (notes of
// the authors on bistable batching). An end that waits for a few messages more stays at the higher rate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::copyrpc {

struct HoldConfig {
    std::uint32_t messages = 0;       // the wanted number in a batch; 0: no batch is held
    Duration most = microseconds(5);  // the longest time that a message waits; at most 1 ms
};

// The state of a session. It reads no clock and does no I/O.
class BatchHold {
public:
    // Returns until when the next batch is held; `now` or earlier means that it leaves. `messages` wait for the batch.
    // It is held only if the mean time between messages makes the missing ones likely in time.
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
    // Notes that a batch of `messages`, one or more, leaves.
    void on_batch(std::uint32_t messages, Instant now) noexcept {
        mean_ = mean_after(Duration{std::min((now - last_).ns, kLongest.ns) / messages});
        last_ = now;
        holds_ = hurries_ = false;
    }
    // Lets the next batch leave without delay: it gets a message whose caller has a deadline. The message says how much
    // time is left, so it must not wait.
    void hurry() noexcept { hurries_ = true; }

private:
    static constexpr Duration kLongest = milliseconds(1);
    // Returns the mean after one more interval between messages. A silence counts while it lasts.
    [[nodiscard]] Duration mean_after(Duration interval) const noexcept {
        return Duration{(mean_.ns * 7 + std::min(interval.ns, kLongest.ns)) / 8};
    }

    Duration mean_ = kLongest;  // between messages
    Instant last_{};            // time of the last batch
    Instant since_{};           // time since which messages have waited
    bool holds_ = false;
    bool hurries_ = false;
};

}  // namespace cairn::copyrpc
