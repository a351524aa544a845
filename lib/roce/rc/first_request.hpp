// Notices the peer's first packet on a connection, and its first request (IBTA vol. 1, 11.6.3.2, 12.9.7.2).
#pragma once

#include <utility>

#include "lib/roce/qp/event_sink.hpp"

namespace cairn::roce::rc {

// Part of a queue pair.
class FirstRequest {
public:
    // Notes a change of state, to RTR or to another one.
    void enter(bool ready_to_receive) noexcept { ready_to_receive_ = ready_to_receive; }
    // Notifies `sink` once, of the next request that is taken; nullptr: no sink.
    void set_sink(EventSink* sink) noexcept { sink_ = sink; }
    void reset() noexcept { *this = {}; }
    [[nodiscard]] bool is_awaited() const noexcept { return ready_to_receive_ || sink_ != nullptr; }
    // Takes note of a request packet. `taken`: it or one before it was the next in order. Returns true for the first
    // one in RTR.
    [[nodiscard]] bool on_packet(bool taken) noexcept {
        if (taken && sink_ != nullptr) {
            std::exchange(sink_, nullptr)->on_event();
        }
        return std::exchange(ready_to_receive_, false);
    }

private:
    EventSink* sink_ = nullptr;
    bool ready_to_receive_ = false;  // and no packet has come yet
};

}  // namespace cairn::roce::rc
