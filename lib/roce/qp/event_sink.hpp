// Who is told at once that a queue or a queue pair has an event to be taken.
#pragma once

namespace cairn::roce {

// Called on the way of a packet or a post: notes it, no more.
class EventSink {
public:
    EventSink() = default;
    EventSink(const EventSink&) = delete;
    EventSink& operator=(const EventSink&) = delete;
    virtual ~EventSink() = default;
    virtual void on_event() noexcept = 0;
};

}  // namespace cairn::roce
