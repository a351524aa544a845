// Congestion control: the rate at which one flow may send. An algorithm learns of the flow's packets and answers and
// sets a rate. The sender keeps the gaps between packets, by the timing wheel.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"

namespace cairn::roce {

// A paced flow that is woken late may catch up on this much of its time: the wheel's slot and a turn of the worker.
constexpr Duration kPacingSlack = microseconds(20);
// A paced flow sends packets of this much time at its rate at once: a batch at high rates, a packet at low ones.
constexpr Duration kPacingBatch = microseconds(10);

// The bytes of an IPv4 packet on an Ethernet link below its BTH: Ethernet header and FCS, preamble and gap, IPv4, UDP.
constexpr std::uint32_t kLinkOverheadBytes = (14 + 4) + (8 + 12) + 20 + 8;

// The measurements that an acknowledgement gives an algorithm.
struct AckSample {
    Duration rtt;           // from sending the packet to reading the answer, less the time that the peer reports
    std::size_t bytes = 0;  // acknowledged by it; may be 0
    // A pause of our own lies in the sample (see StallWatch). It is ignored, since it does not show the network.
    bool across_stall = false;
};

// The controller of one flow. Driven by one thread; reads no clock, allocates nothing. A time earlier than the one
// before counts as that one.
//
// An uncongested flow sends at link rate: it needs no gaps, and its calls end in an inline comparison. Only congested
// flows make virtual calls. The controller does not learn of lost packets: neither algorithm's paper has an answer to
// them.
class CongestionControl {
public:
    virtual ~CongestionControl() = default;

    // Charges the flow for a packet of `bytes` that leaves now.
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
    // Takes a congestion notification packet of the peer (IBTA annex A17).
    void on_cnp(Instant now) noexcept { handle_cnp(now); }
    // Runs the work that is due. Spurious calls are harmless. Late calls are harmless, too: each step counts as taken
    // at its own time. The other inputs first run the work that is due, so that a flow at rest needs no timer. Call it
    // before asking for the rate.
    void on_timeout(Instant now) noexcept {
        if (deadline_ <= now) [[unlikely]] {
            handle_timeout(now);
        }
    }
    // Returns when the rate next changes by itself; Instant::never() if the flow is uncongested. Each input changes it.
    [[nodiscard]] Instant next_deadline() const noexcept { return deadline_; }

    // Returns true at link rate: the caller may send without pacing.
    [[nodiscard]] bool is_uncongested() const noexcept { return rate_bytes_per_s_ >= link_rate_bytes_per_s_; }
    // Returns the rate, in [least rate of the algorithm, link rate].
    [[nodiscard]] double rate_bytes_per_s() const noexcept { return rate_bytes_per_s_; }
    [[nodiscard]] double link_rate_bytes_per_s() const noexcept { return link_rate_bytes_per_s_; }
    // Returns the time from the departure of a packet of `bytes` to that of the next one, rounded up.
    [[nodiscard]] Duration gap(std::size_t bytes) const noexcept {
        return {static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * ns_per_byte_))};
    }

protected:
    // Begins at link rate. on_ack() of an uncongested flow with an RTT below `bypass_rtt` changes nothing and is not
    // handed on.
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

constexpr Duration kOwnPause = milliseconds(1);  // between two turns of a worker: it was preempted or asleep

// Recognises samples that hold a pause of the worker's own: it was preempted, or a handler took long. Such a round trip
// is long though the network is idle, and would park a flow at its least rate. One per worker.
class StallWatch {
public:
    // Treats turns more than `threshold` apart as a pause. `threshold` is positive (asserted).
    explicit StallWatch(Duration threshold) noexcept : threshold_(threshold) { CAIRN_ASSERT(threshold > Duration{}); }

    // Notes a turn. Called in each turn, before its packets are read.
    void on_turn(Instant now) noexcept {
        if (seen_ && now - last_turn_ > threshold_) [[unlikely]] {
            stall_end_ = now;
        }
        seen_ = true;
        last_turn_ = now;
    }
    // Returns true if a pause ended after the time `sent`.
    [[nodiscard]] bool spoils(Instant sent) const noexcept { return sent < stall_end_; }

private:
    Duration threshold_;
    Instant last_turn_{};
    Instant stall_end_{std::numeric_limits<std::int64_t>::min()};
    bool seen_ = false;
};

}  // namespace cairn::roce
