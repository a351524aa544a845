// Chooses the packets of a requester that ask for an acknowledgement, and knows how long their peer may take to answer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/types.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

// All messages ask at their end, and long ones within, so that the window never waits for an answer. If the peer
// acknowledges by count or time, they ask only if the answer is wanted soon, and now and then. The first message asks,
// and one of kAskEveryMessages, so that round trips are measured. Enough of them ask that at most half of the send
// queue waits for the peer's time.
class AckRequests {
public:
    AckRequests(std::uint32_t window_packets, std::uint32_t send_slots) noexcept
        : window_packets_(window_packets), every_messages_(std::clamp(send_slots / 2, 1U, kAskEveryMessages)) {}

    // Forgets everything; `first` is the PSN of the next packet.
    void start(Psn first, bool peer_delays) noexcept {
        peer_delays_ = peer_delays;
        packets_ = 0;
        messages_ = every_messages_;
        asked_until_ = first;
        set_interval(window_packets_);
    }
    // Makes packets ask at least once in `packets` packets, within [1, half a window].
    void set_interval(std::uint32_t packets) noexcept { interval_ = std::clamp(packets, 1U, window_packets_ / 2); }

    // Counts a packet that leaves. Returns true if it asks. `behind` is the PSN after it and after its answer's
    // packets. If `soon`, it asks if it ends its message.
    [[nodiscard]] bool ask(Psn behind, bool ends_message, bool soon) noexcept {
        ++packets_;
        messages_ += ends_message ? 1 : 0;
        const bool by_message = ends_message && (soon || messages_ >= every_messages_);
        if (!by_message && packets_ < interval_) {
            return false;
        }
        packets_ = 0;
        messages_ = 0;
        asked_until_ = behind.since(asked_until_) > 0 ? behind : asked_until_;
        return true;
    }

    [[nodiscard]] bool peer_delays() const noexcept { return peer_delays_; }
    // Returns the PSN after the newest one whose answer was asked for.
    [[nodiscard]] Psn asked_until() const noexcept { return asked_until_; }
    // Returns how long the peer may put off its answer to the oldest PSN without one, in addition to a round trip.
    [[nodiscard]] Duration delay(Psn unacknowledged) const noexcept {
        const bool asked = asked_until_.since(unacknowledged) > 0;
        return peer_delays_ && !asked ? kAckDelay : Duration{};
    }

private:
    const std::uint32_t window_packets_;
    const std::uint32_t every_messages_;
    std::uint32_t interval_ = 1;  // packets
    std::uint32_t packets_ = 0;   // packets that left since one asked
    std::uint32_t messages_ = 0;
    Psn asked_until_{};
    bool peer_delays_ = false;
};

}  // namespace cairn::roce::rc
