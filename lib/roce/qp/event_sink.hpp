// The owner of a queue or queue pair, which is notified of events at once.
#pragma once

namespace cairn::roce {

// Called while a packet or a post is handled: takes a note and does nothing else.
class EventSink {
public:
    EventSink() = default;
    EventSink(const EventSink&) = delete;
    EventSink& operator=(const EventSink&) = delete;
    virtual ~EventSink() = default;
    virtual void on_event() noexcept = 0;
};

}  // namespace cairn::roce
