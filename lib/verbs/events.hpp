// What happens while nobody polls, as descriptors to sleep on: completion channels and a device's asynchronous events.
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

// Readable from signal() to clear(). Any thread may sleep on it, and read it when it wakes: it is readable again after
// the next event that is taken, if others are left, and after the next that comes.
class EventDescriptor {
public:
    // Errors: the process has no descriptor left.
    static Result<std::unique_ptr<EventDescriptor>> create();
    EventDescriptor(const EventDescriptor&) = delete;
    EventDescriptor& operator=(const EventDescriptor&) = delete;
    ~EventDescriptor();

    [[nodiscard]] int fd() const noexcept { return fd_; }
    // By one thread; system calls only where they change something.
    void signal() noexcept;
    void clear() noexcept;
    // An event was taken, perhaps by who read the descriptor: the next signal() makes it readable, whatever it was.
    void on_taken() noexcept { state_ = state_ == State::Clear ? State::Clear : State::Unknown; }
    [[nodiscard]] bool readable() const noexcept { return state_ == State::Readable; }

private:
    explicit EventDescriptor(int fd) noexcept : fd_(fd) {}
    enum class State : std::uint8_t { Clear, Readable, Unknown };
    int fd_;
    State state_ = State::Clear;  // Readable: unless a sleeper read it
};

// Affiliated asynchronous events (IBTA vol. 1, 11.6.3.1).
enum class AsyncKind : std::uint8_t {
    QpFatal,
    QpRequestError,  // the peer asked what it may not
    QpAccessError,   // likewise, for memory
    CommunicationEstablished,
    SendQueueDrained,
    LastWqeReached,
    SrqLimitReached,
    CqError,  // overrun
};

struct AsyncEvent {
    AsyncKind kind{};
    std::variant<Qp*, UdQp*, Cq*, Srq*> of;  // what has it

    // What has it, if that is a `Source`; else nullptr.
    template <class Source>
    [[nodiscard]] Source* source() const noexcept {
        Source* const* const found = std::get_if<Source*>(&of);
        return found == nullptr ? nullptr : *found;
    }
};

class AsyncEvents;

// What may have such events.
class AsyncSource : public roce::EventSink {
public:
    explicit AsyncSource(AsyncEvents& events) noexcept : events_(events) {}
    ~AsyncSource() override;
    void on_event() noexcept override;
    // The next one, each once.
    [[nodiscard]] virtual std::optional<AsyncEvent> take_async() noexcept = 0;

    roce::QpRingLink<AsyncSource> link{};  // of those that have some

private:
    AsyncEvents& events_;
};

// All of one device. A Qp's own poll_event() takes from the same ones.
class AsyncEvents {
public:
    [[nodiscard]] std::optional<AsyncEvent> poll() noexcept;
    // Readable from the end of the turn that brought an event until poll() finds none. Errors: see EventDescriptor.
    Result<int> descriptor();

    // For the device and the sources.
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

// Tells which of its completion queues made the event that they were armed for. Made by a device; used on its thread,
// except for the descriptor.
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

    // Readable from the end of the turn in which one fired until get_event() finds none.
    [[nodiscard]] int fd() const noexcept { return descriptor_->fd(); }
    // The next one that fired, each once; nullptr: none. Arm it again, then poll it: what comes between is in it.
    [[nodiscard]] Cq* get_event() noexcept;
    [[nodiscard]] bool in_use() const noexcept { return users_ != 0; }

    // For the device and the completion queues.
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
