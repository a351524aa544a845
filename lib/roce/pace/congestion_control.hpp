// Congestion control: how fast one flow may send. An algorithm is told what happens to the flow and says a rate;
// whoever sends keeps the gaps, with the timing wheel.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"

namespace cairn::roce {

// What a paced flow that was woken late may catch up on: the wheel's slot and a turn of the worker's loop.
constexpr Duration kPacingSlack = microseconds(20);
// What a paced flow sends at once when its time has come, at its rate: a batch at high rates, a packet at low ones.
constexpr Duration kPacingBatch = microseconds(10);

// What an acknowledgement tells.
struct AckSample {
    Duration rtt;           // from sending the packet to reading the answer, less what the peer says it took
    std::size_t bytes = 0;  // acknowledged by it; may be 0
    // The sample holds a pause of our own (see StallWatch) and says nothing of the network: it is ignored.
    bool across_stall = false;
};

// One flow's controller. Driven by one thread; reads no clock, allocates nothing. Times given should not go back; when
// they do, no time has passed.
//
// An uncongested flow sends at link rate: it needs no gaps, and what it tells here ends in an inline comparison.
// Virtual calls are made for congested flows alone. A lost packet is not told: neither algorithm's paper has an answer
// to one.
class CongestionControl {
public:
    virtual ~CongestionControl() = default;

    // A packet of `bytes` leaves.
    void on_sent(std::size_t bytes, Instant now) noexcept {
        if (!is_uncongested()) [[unlikely]] {
            handle_sent(bytes, now);
        }
    }
    void on_ack(const AckSample& sample, Instant now) noexcept {
        if ((is_uncongested() && sample.rtt < bypass_rtt_) || sample.across_stall) [[likely]] {
            return;
        }
        handle_ack(sample, now);
    }
    // The peer's congestion notification packet has come (IBTA annex A17).
    void on_cnp(Instant now) noexcept { handle_cnp(now); }
    // Runs what is due. Spurious calls are harmless. Late ones too: each step counts as taken at its own time, and the
    // other inputs take what is due first, so that a flow at rest needs no timer. Call it before asking for the rate.
    void on_timeout(Instant now) noexcept {
        if (deadline_ <= now) [[unlikely]] {
            handle_timeout(now);
        }
    }
    // When the rate changes next by itself; Instant::never() if uncongested. Changes by each of the inputs.
    [[nodiscard]] Instant next_deadline() const noexcept { return deadline_; }

    // At link rate: the caller may send without pacing.
    [[nodiscard]] bool is_uncongested() const noexcept { return rate_bytes_per_s_ >= link_rate_bytes_per_s_; }
    // In [least rate of the algorithm, link rate].
    [[nodiscard]] double rate_bytes_per_s() const noexcept { return rate_bytes_per_s_; }
    [[nodiscard]] double link_rate_bytes_per_s() const noexcept { return link_rate_bytes_per_s_; }
    // From the departure of a packet of `bytes` to that of the next one; rounded up.
    [[nodiscard]] Duration gap(std::size_t bytes) const noexcept {
        return {static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * ns_per_byte_))};
    }

protected:
    // on_ack() of an uncongested flow with an RTT below `bypass_rtt` changes nothing and is not handed on.
    CongestionControl(double link_rate_bytes_per_s, Duration bypass_rtt) noexcept
        : link_rate_bytes_per_s_(link_rate_bytes_per_s), bypass_rtt_(bypass_rtt) {
        CAIRN_ASSERT(link_rate_bytes_per_s > 0);
        set_rate(link_rate_bytes_per_s);
    }
    CongestionControl(const CongestionControl&) = default;
    CongestionControl& operator=(const CongestionControl&) = default;

    void set_rate(double bytes_per_s) noexcept {
        CAIRN_ASSERT(bytes_per_s > 0 && bytes_per_s <= link_rate_bytes_per_s_);
        rate_bytes_per_s_ = bytes_per_s;
        ns_per_byte_ = 1e9 / bytes_per_s;
    }
    void set_deadline(Instant deadline) noexcept { deadline_ = deadline; }
    void set_bypass(Duration bypass_rtt) noexcept { bypass_rtt_ = bypass_rtt; }

private:
    virtual void handle_sent(std::size_t bytes, Instant now) noexcept = 0;
    virtual void handle_ack(const AckSample& sample, Instant now) noexcept = 0;
    virtual void handle_cnp(Instant now) noexcept = 0;
    virtual void handle_timeout(Instant now) noexcept = 0;

    double rate_bytes_per_s_ = 0;
    double link_rate_bytes_per_s_;
    double ns_per_byte_ = 0;
    Duration bypass_rtt_;
    Instant deadline_ = Instant::never();
};

constexpr Duration kOwnPause = milliseconds(1);  // between two turns of a worker: it was away, by force or asleep

// Tells which samples hold a pause of the worker's own loop: it was preempted, or a handler took long. Such an RTT is
// long though the network is idle, and would park a flow at its least rate. One per worker.
class StallWatch {
public:
    // A turn of the loop later than `threshold` after the one before was a pause; > 0.
    explicit StallWatch(Duration threshold) noexcept : threshold_(threshold) { CAIRN_ASSERT(threshold > Duration{}); }

    // Each turn, before its packets are read.
    void on_turn(Instant now) noexcept {
        if (seen_ && now - last_turn_ > threshold_) [[unlikely]] {
            stall_end_ = now;
        }
        seen_ = true;
        last_turn_ = now;
    }
    // Whether a pause ended after that time.
    [[nodiscard]] bool spoils(Instant sent) const noexcept { return sent < stall_end_; }

private:
    Duration threshold_;
    Instant last_turn_{};
    Instant stall_end_{std::numeric_limits<std::int64_t>::min()};
    bool seen_ = false;
};

}  // namespace cairn::roce
