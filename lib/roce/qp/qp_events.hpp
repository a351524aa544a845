// Asynchronous events of a queue pair (IBTA vol. 1, 11.6.3).
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "lib/roce/qp/event_sink.hpp"

namespace cairn::roce {

enum class QpEvent : std::uint8_t {
    CommunicationEstablished,  // a packet came in RTR; once for each time in RTR
    SendQueueDrained,          // in SQD, nothing is outstanding any more
    Fatal,                     // a local error without a completion led to ERR
    InvalidRequest,            // a request that the peer may not make led to ERR
    AccessViolation,           // a request for memory that the peer may not touch led to ERR
    CqOverrun,                 // a lost completion led to ERR
    LastWqeReached,            // in ERR, the queue pair no longer takes requests from its shared receive queue
    Count,
};

// The events that were raised and not polled, each once.
class QpEvents {
public:
    void raise(QpEvent event) noexcept {
        bits_ |= 1U << static_cast<unsigned>(event);
        if (sink_ != nullptr) {
            sink_->on_event();
        }
    }
    void clear() noexcept { bits_ = 0; }
    // Notifies `sink` of each event; nullptr: no sink. It outlives this object.
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
