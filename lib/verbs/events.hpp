// Descriptors for threads that sleep instead of polling: completion channels and a device's asynchronous events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/qp_ring.hpp"

namespace cairn::verbs {

class Qp;
class UdQp;
class Cq;
class Srq;

// A descriptor that is readable from signal() to clear(). Any thread may sleep on it, and read it after waking. It
// becomes readable again after the next event is taken, if others are left, and after the next event comes.
class EventDescriptor {
public:
    // Makes a descriptor. Errors: the process has no descriptor left.
    static Result<std::unique_ptr<EventDescriptor>> create();
    EventDescriptor(const EventDescriptor&) = delete;
    EventDescriptor& operator=(const EventDescriptor&) = delete;
    ~EventDescriptor();

    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Makes the descriptor readable, or not. One thread calls these two. They make a system call only if it changes
    // something.
    void signal() noexcept;
    void clear() noexcept;
    // Notes that an event was taken, perhaps by a sleeper that read the descriptor. The next signal() makes the
    // descriptor readable in either case.
    void on_taken() noexcept { state_ = state_ == State::Clear ? State::Clear : State::Unknown; }
    [[nodiscard]] bool readable() const noexcept { return state_ == State::Readable; }

private:
    explicit EventDescriptor(int fd) noexcept : fd_(fd) {}
    enum class State : std::uint8_t { Clear, Readable, Unknown };
    int fd_;
    State state_ = State::Clear;  // Readable may be outdated: a sleeper may have read it
};

// Affiliated asynchronous events (IBTA vol. 1, 11.6.3.1).
enum class AsyncKind : std::uint8_t {
    QpFatal,
    QpRequestError,  // the peer made an invalid request
    QpAccessError,   // the peer made a request for memory that it may not access
    CommunicationEstablished,
    SendQueueDrained,
    LastWqeReached,
    SrqLimitReached,
    CqError,  // overrun
};

struct AsyncEvent {
    AsyncKind kind{};
    std::variant<Qp*, UdQp*, Cq*, Srq*> of;  // the object that has the event

    // Returns the object that has the event if it is a `Source`, else nullptr.
    template <class Source>
    [[nodiscard]] Source* source() const noexcept {
        Source* const* const found = std::get_if<Source*>(&of);
        return found == nullptr ? nullptr : *found;
    }
};

class AsyncEvents;

// An object that may have such events.
class AsyncSource : public roce::EventSink {
public:
    explicit AsyncSource(AsyncEvents& events) noexcept : events_(events) {}
    ~AsyncSource() override;
    void on_event() noexcept override;
    // Returns the next event. Each event is returned once.
    [[nodiscard]] virtual std::optional<AsyncEvent> take_async() noexcept = 0;

    roce::QpRingLink<AsyncSource> link{};  // in the ring of the sources that have events

private:
    AsyncEvents& events_;
};

// The events of one device. poll_event() of a Qp takes from the same events.
class AsyncEvents {
public:
    [[nodiscard]] std::optional<AsyncEvent> poll() noexcept;
    // Returns a descriptor that is readable from the end of the turn that brought an event until poll() finds none.
    // Errors: see EventDescriptor.
    Result<int> descriptor();

    // Signals an event, for the device and the sources.
    void signal() noexcept;
    [[nodiscard]] bool must_signal() const noexcept {
        return descriptor_ != nullptr && waiting_.size() != 0 && !descriptor_->readable();
    }
    void add(AsyncSource& source) noexcept { waiting_.push(source); }
    void remove(AsyncSource& source) noexcept { waiting_.remove(source); }

private:
    roce::QpRing<AsyncSource> waiting_;
    std::unique_ptr<EventDescriptor> descriptor_;
};

// A completion queue's place in its channel.
struct ChannelEntry {
    Cq* cq = nullptr;
    roce::QpRingLink<ChannelEntry> link{};
};

// Reports which of its completion queues had the event that they were armed for. A device makes it. It is used on the
// device's thread, except for the descriptor.
class CompletionChannel {
public:
    using All = std::vector<CompletionChannel*>;  // of a device

    CompletionChannel(All& all, std::unique_ptr<EventDescriptor> descriptor)
        : all_(all), descriptor_(std::move(descriptor)) {
        all_.push_back(this);
    }
    CompletionChannel(const CompletionChannel&) = delete;
    CompletionChannel& operator=(const CompletionChannel&) = delete;
    // Its completion queues have ended (asserted).
    ~CompletionChannel() {
        CAIRN_ASSERT(users_ == 0);
        std::erase(all_, this);
    }

    // Returns a descriptor that is readable from the end of the turn in which a queue fired until get_event() finds
    // none.
    [[nodiscard]] int fd() const noexcept { return descriptor_->fd(); }
    // Returns the next queue that fired, once; nullptr if there is none. The user arms the queue again and then polls
    // it, so that no completion in between is missed.
    [[nodiscard]] Cq* get_event() noexcept;
    [[nodiscard]] bool in_use() const noexcept { return users_ != 0; }

    // Counts users, for the device and the completion queues.
    void hold() noexcept { ++users_; }
    void release() noexcept { --users_; }
    void add(ChannelEntry& entry) noexcept { fired_.push(entry); }
    void remove(ChannelEntry& entry) noexcept { fired_.remove(entry); }
    [[nodiscard]] bool must_signal() const noexcept { return fired_.size() != 0 && !descriptor_->readable(); }
    void signal() noexcept {
        if (fired_.size() != 0) {
            descriptor_->signal();
        }
    }

private:
    All& all_;
    roce::QpRing<ChannelEntry> fired_;
    std::unique_ptr<EventDescriptor> descriptor_;
    std::uint32_t users_ = 0;
};

}  // namespace cairn::verbs
