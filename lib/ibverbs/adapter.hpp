// The engine of one address in this process, under one lock. A helper thread runs it while the program's threads do
// not.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lib/base/result.hpp"
#include "lib/base/steady_time.hpp"
#include "lib/broker/membership.hpp"
#include "lib/ibverbs/event_count.hpp"
#include "lib/ibverbs/guard_lease.hpp"
#include "lib/ibverbs/helper_policy.hpp"
#include "lib/ibverbs/lock.hpp"
#include "lib/ibverbs/post_policy.hpp"
#include "lib/port/faults.hpp"
#include "lib/port/port.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::ibverbs {

struct AdapterConfig {
    std::string device;  // the device that the adapter belongs to
    net::IpAddress local{};
    std::string pcap;  // capture file; empty: none
    port::Faults faults{};
    bool spins = false;  // the helper thread, while it looks at the socket: for machines with CPUs to spare
};

// A descriptor that the helper watches. Its owner is notified when it is readable. Everything needs the lock.
class Watched {
public:
    Watched() = default;
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    virtual ~Watched() = default;
    [[nodiscard]] virtual int fd() const noexcept = 0;
    virtual void on_readable() noexcept = 0;
};

// Counts the turns in a row in which acknowledgements wait for more packets to leave with, and responses for one turn.
// One acknowledgement covers all packets that came meanwhile.
class HeldTurns {
public:
    // Returns whether nothing but acknowledgements is owed, and they may wait for one turn more.
    [[nodiscard]] bool may_go_on(roce::Engine::Owed owed) noexcept {
        return owed == roce::Engine::Owed::Acknowledgements && ++count_ < kMost;
    }
    // As may_go_on(), for callers that may also hold back responses, for one turn. Responses to two batches then share
    // sends; between READs, the last packet of one leaves with the first of the next.
    [[nodiscard]] bool may_answer_later(roce::Engine::Owed owed) noexcept {
        return owed == roce::Engine::Owed::More ? count_++ == 0 : may_go_on(owed);
    }
    void end() noexcept { count_ = 0; }

private:
    static constexpr int kMost = 6;  // while more packets come
    int count_ = 0;
};

// Functions marked "need the lock" are called with lock() held. All functions of the engine need it, too.
class Adapter : public std::enable_shared_from_this<Adapter> {
public:
    // Opens the address, together with other programs if there is a broker, and starts the helper thread. Errors: those
    // of Membership::join() and UringPort::open(); no thread, no descriptor.
    static Result<std::shared_ptr<Adapter>> open(const AdapterConfig& config);
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    // Sends what is owed, and ends the helper thread. All queue pairs have ended.
    ~Adapter();

    [[nodiscard]] Lock& lock() noexcept { return lock_; }
    // Returns the process's client of the broker of its address; nullptr if the process has the address alone. Any
    // thread.
    [[nodiscard]] broker::Voice* voice() noexcept { return membership_ == nullptr ? nullptr : &membership_->voice(); }

    // These need the lock.
    [[nodiscard]] worker::Worker& worker() noexcept { return *worker_; }
    [[nodiscard]] roce::Engine& engine() noexcept { return worker_->engine(); }
    // Returns the time. It never goes back.
    [[nodiscard]] Instant now() noexcept;
    // Takes a turn for a caller that polls: posted requests leave, then packets that came are delivered. While the
    // helper is parked, packets that this makes due wait for the caller's next call, to leave with its next posts.
    void poll_turn() noexcept;
    // Requests were posted. They leave at once, or with the next poll: see PostPolicy.
    void on_posted(std::uint64_t bytes) noexcept;
    // Sends what is due and notifies channels, after a change that peers or sleepers wait for.
    void settle() noexcept;
    // Returns the events that descriptors do not show yet. They do at the end of the turn.
    [[nodiscard]] EventsToShow& events() noexcept { return events_; }
    // Returns when `fd`, which shows events, may be readable. Until then the calling thread does the helper's work,
    // unless nothing comes for long. Returns false if a signal ended the sleep. A cancellation point. The caller does
    // not hold the lock, which is free during the sleep.
    [[nodiscard]] bool sleep_for_event(int fd);
    // Makes this adapter, in a child of fork(), an orphan: it is the parent's. It sends and takes in nothing from now
    // on, and its calls do not wait. Objects may be ended. The adapter never ends itself, since its threads are not
    // here. Its descriptors are no more than their numbers: see InUse.
    void orphan() noexcept;
    // Notes that a completion queue was armed: its owner is about to sleep, and the helper looks at the socket from now
    // on.
    void on_armed() noexcept;
    // Notes that an armed queue fired, or ended.
    void on_disarmed() noexcept { --armed_; }
    // Makes the helper watch this descriptor next to the socket, in place of the one that it watched so far. If it is
    // nullptr, the helper watches none.
    void watch(Watched* watched) noexcept;
    void unwatch(const Watched& watched) noexcept { watched_ == &watched ? watch(nullptr) : void(); }

private:
    Adapter(std::unique_ptr<broker::Membership> membership, std::unique_ptr<port::Port> port, int wake_fd,
            bool spins) noexcept;
    struct Rest {
        Instant due{};
        bool on_socket = false;
    };
    // The result of a thread's turns in a row.
    struct Guarded {
        bool found = false;      // packets had come
        bool holds = false;      // acknowledgements are owed, and a caller that posts often may post soon
        bool gives_way = false;  // there is more to do, and another thread waits for the lock
    };
    void run_helper() noexcept;
    [[nodiscard]] Rest take_helper_turn(bool woken) noexcept;
    [[nodiscard]] Rest rest_beside_lease(Instant now, Instant last_call) noexcept;
    [[nodiscard]] Guarded guard_turns(Instant now) noexcept;
    void flush(Instant now) noexcept;
    void give_out(Instant now) noexcept;
    [[nodiscard]] bool owes(roce::Engine::Owed owed) noexcept {
        return owed != roce::Engine::Owed::Nothing || worker_->sender().queued() != 0;
    }
    void wake_helper() noexcept;
    [[nodiscard]] bool sleep_until(const Rest& rest) noexcept;
    [[nodiscard]] Rest guard_for_event(Instant& tired_at) noexcept;
    void give_back_lease() noexcept;
    // Returns whether the helper, which sends what callers leave, wakes soon.
    [[nodiscard]] bool helper_comes_soon(Instant now) const noexcept {
        return sleeps_until_ <= now + HelperPolicy::kLongestNap;
    }

    Lock lock_;
    std::unique_ptr<broker::Membership> membership_;  // nullptr: the process has the address alone
    std::unique_ptr<port::Port> port_;
    std::unique_ptr<worker::Worker> worker_;
    SteadyTime time_;
    EventsToShow events_;
    HelperPolicy policy_;
    PostPolicy posts_;
    Instant last_call_{-seconds(1).ns};
    std::uint32_t armed_ = 0;  // completion queues
    GuardLease lease_;
    Instant sleeps_until_ = Instant::never();  // the helper
    HeldTurns held_;
    const int wake_fd_;
    int socket_fd_ = -1;
    Watched* watched_ = nullptr;
    std::atomic<int> watched_fd_{-1};
    std::atomic<bool> ends_{false};
    std::thread helper_;
    std::shared_ptr<Adapter> kept_;  // keeps an orphan alive
};

}  // namespace cairn::ibverbs
