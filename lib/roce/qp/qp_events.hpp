// Asynchronous events of a queue pair (IBTA vol. 1, 11.6.3).
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "lib/roce/qp/event_sink.hpp"

namespace cairn::roce {

enum class QpEvent : std::uint8_t {
    CommunicationEstablished,  // the first packet came while still in RTR; once for each time in RTR
    SendQueueDrained,          // in SQD, and nothing is on its way
    Fatal,                     // a local error that no completion tells: the state is ERR
    InvalidRequest,            // the peer asked what it may not: the state is ERR
    AccessViolation,           // likewise, for memory
    CqOverrun,                 // a completion was lost: the state is ERR
    LastWqeReached,            // in ERR, and nothing will take from the shared receive queue any more
    Count,
};

// Those that were not looked at yet, each once.
class QpEvents {
public:
    void raise(QpEvent event) noexcept {
        bits_ |= 1U << static_cast<unsigned>(event);
        if (sink_ != nullptr) {
            sink_->on_event();
        }
    }
    void clear() noexcept { bits_ = 0; }
    // Told of each; nullptr: nobody is. Outlives this.
    void set_sink(EventSink* sink) noexcept { sink_ = sink; }
    [[nodiscard]] std::optional<QpEvent> poll() noexcept {
        if (bits_ == 0) {
            return std::nullopt;
        }
        const int bit = std::countr_zero(bits_);
        bits_ &= bits_ - 1;
        return static_cast<QpEvent>(bit);
    }

private:
    EventSink* sink_ = nullptr;
    std::uint32_t bits_ = 0;
};

}  // namespace cairn::roce
