// Protection domains, memory regions, completion queues, shared receive queues, address handles. A Device makes them
// and outlives them. They are used on the thread that drives it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "lib/port/port.hpp"
#include "lib/roce/engine.hpp"
#include "lib/verbs/events.hpp"
#include "lib/verbs/types.hpp"

namespace cairn::verbs {

// An object that others use. It cannot end before its users.
class Shared {
public:
    Shared() = default;
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    // Ending an object in use is a bug of the program (asserted); destroy() checks first.
    ~Shared() { CAIRN_ASSERT(users_ == 0); }

    void hold() noexcept { ++users_; }
    void release() noexcept { --users_; }
    [[nodiscard]] bool in_use() const noexcept { return users_ != 0; }

private:
    std::uint32_t users_ = 0;
};

// Keeps a shared object in use for its own lifetime.
template <class Object>
class Hold {
public:
    explicit Hold(Object& object) noexcept : object_(object) { object_.hold(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { object_.release(); }
    [[nodiscard]] Object& operator*() const noexcept { return object_; }
    [[nodiscard]] Object* operator->() const noexcept { return &object_; }

private:
    Object& object_;
};

// Ends the object. Returns an Error and does nothing while others use it.
template <class Object>
Status destroy(std::unique_ptr<Object>& object) {
    if (object != nullptr && object->in_use()) {
        return Error{"it is still in use", "destroy queue pairs first, then regions, then what they were made with"};
    }
    object.reset();
    return Nothing{};
}

class Pd : public Shared {
public:
    explicit Pd(roce::Engine& engine) : engine_(engine), pd_(engine.create_pd()) {}
    ~Pd() {
        const bool ended = engine_.destroy_pd(pd_);
        CAIRN_ASSERT(ended);
    }
    [[nodiscard]] roce::Pd id() const noexcept { return pd_; }

private:
    roce::Engine& engine_;
    roce::Pd pd_;
};

// Memory that work requests and peers may name. Once it ends, it is neither read nor written any more, and work
// requests that name it fail. Only windows that are bound to it (Mw) keep it in use.
class Mr {
public:
    Mr(roce::Engine& engine, Pd& pd, std::span<std::uint8_t> memory, std::uint64_t base, Rkey key)
        : engine_(engine), pd_(pd), memory_(memory), base_(base), key_(key) {}
    Mr(const Mr&) = delete;
    Mr& operator=(const Mr&) = delete;
    // Ending it while a window is bound to it is a bug of the program (asserted); destroy() checks first.
    ~Mr() {
        CAIRN_ASSERT(!in_use());
        engine_.destroy_region(key_);
    }

    [[nodiscard]] Rkey rkey() const noexcept { return key_; }
    [[nodiscard]] Lkey lkey() const noexcept { return Lkey{key_.value}; }
    [[nodiscard]] std::uint64_t address() const noexcept { return base_; }  // of the first byte, in work requests
    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return memory_; }
    // Returns an SGE that names `count` bytes from `offset` on.
    [[nodiscard]] Sge sge(std::uint64_t offset, std::uint32_t count) const noexcept {
        return {base_ + offset, count, lkey()};
    }
    [[nodiscard]] bool in_use() const noexcept { return engine_.memory().has_windows(key_); }

private:
    roce::Engine& engine_;
    Hold<Pd> pd_;
    std::span<std::uint8_t> memory_;
    std::uint64_t base_;
    Rkey key_;
};

class Cq : public Shared, private AsyncSource {
public:
    Cq(AsyncEvents& events, std::uint32_t slots, CompletionChannel* channel);
    ~Cq() override;
    // Takes the oldest completions. Returns their number.
    [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept { return queue_.poll(out); }
    // Arms the queue for its next completion, or for the next one that is solicited or failed. When it fires,
    // take_event() is true once and the channel reports it.
    void arm(Arm wish) noexcept { queue_.arm(wish); }
    [[nodiscard]] bool take_event() noexcept { return queue_.take_event(); }
    // Returns true if a completion was lost. The queue pairs that filled the queue have stopped.
    [[nodiscard]] bool overrun() const noexcept { return queue_.overrun(); }
    [[nodiscard]] std::uint32_t slots() const noexcept { return queue_.slots(); }
    [[nodiscard]] roce::CompletionQueue& queue() noexcept { return queue_; }

private:
    void on_event() noexcept override;
    [[nodiscard]] std::optional<AsyncEvent> take_async() noexcept override;

    roce::CompletionQueue queue_;
    CompletionChannel* channel_;
    ChannelEntry entry_{};
    bool overrun_told_ = false;
};

class Srq : public Shared, private AsyncSource {
public:
    Srq(AsyncEvents& events, std::uint32_t slots, std::uint32_t max_sges)
        : AsyncSource(events), queue_(slots, max_sges) {
        queue_.set_sink(this);
    }
    PostResult post(std::span<const ReceiveRequest> requests) noexcept {
        return post_burst(requests, [this](const ReceiveRequest& one) noexcept { return queue_.post(one); });
    }
    // Makes one event when fewer than `limit` requests are left; 0 makes none.
    void set_limit(std::uint32_t limit) noexcept { queue_.set_limit(limit); }
    [[nodiscard]] bool take_limit_event() noexcept { return queue_.take_limit_event(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return queue_.size(); }
    [[nodiscard]] roce::ReceiveQueue& queue() noexcept { return queue_; }
    // Returns true if messages come by XRC targets and not by queue pairs made with the queue.
    [[nodiscard]] virtual bool is_xrc() const noexcept { return false; }

private:
    [[nodiscard]] std::optional<AsyncEvent> take_async() noexcept override;

    roce::ReceiveQueue queue_;
};

// The queues that a queue pair is made with. They outlive it. Without a shared receive queue it has its own.
struct QpQueues {
    Cq& sends;
    Cq& receives;
    Srq* shared_receives = nullptr;
    // Notified of each RDMA WRITE of the peer without immediate data, but of no ATOMIC WRITE, once all of it lies in
    // memory. So a program with many connections need not look at all of them. It outlives the queue pair. nullptr: no
    // sink is notified.
    roce::EventSink* writes = nullptr;

    [[nodiscard]] roce::Engine::RcQueues of_engine() const noexcept {
        return {sends.queue(), receives.queue(), shared_receives == nullptr ? nullptr : &shared_receives->queue(),
                writes};
    }
};

// The objects that a queue pair holds during its lifetime.
struct HeldQueues {
    HeldQueues(Pd& domain, const QpQueues& queues) noexcept
        : pd(domain), sends(queues.sends), receives(queues.receives) {
        if (queues.shared_receives != nullptr) {
            shared_receives.emplace(*queues.shared_receives);
        }
    }

    Hold<Pd> pd;
    Hold<Cq> sends;
    Hold<Cq> receives;
    std::optional<Hold<Srq>> shared_receives;
};

// The way to a host or a multicast group, kept ready during its lifetime.
class Ah {
public:
    explicit Ah(port::Path& path) noexcept : path_(path) { path_.pin(); }
    Ah(const Ah&) = delete;
    Ah& operator=(const Ah&) = delete;
    ~Ah() { path_.unpin(); }
    [[nodiscard]] port::Path& path() const noexcept { return path_; }
    [[nodiscard]] bool in_use() const noexcept { return false; }  // queue pairs pin the path themselves

private:
    port::Path& path_;
};

}  // namespace cairn::verbs
