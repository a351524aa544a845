// Adapter: the engine of one address in this process, under one lock, and the helper thread that runs it while the
// program's threads do not.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lib/base/result.hpp"
#include "lib/base/steady_time.hpp"
#include "lib/ibverbs/event_count.hpp"
#include "lib/ibverbs/helper_policy.hpp"
#include "lib/ibverbs/lock.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::ibverbs {

struct AdapterConfig {
    net::IpAddress local{};
    std::string pcap;  // capture file; empty: none
};

// What is said to need the lock is called by who holds it. Everything of the engine needs it too.
class Adapter {
public:
    // Opens the address and starts the helper thread. Errors: those of UringPort::open(); no thread, no descriptor.
    static Result<std::shared_ptr<Adapter>> open(const AdapterConfig& config);
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    // Sends what is owed, and ends the helper thread. All queue pairs have ended.
    ~Adapter();

    [[nodiscard]] Lock& lock() noexcept { return lock_; }

    // These need the lock.
    [[nodiscard]] worker::Worker& worker() noexcept { return *worker_; }
    [[nodiscard]] roce::Engine& engine() noexcept { return worker_->engine(); }
    // Returns the time. It never goes back.
    [[nodiscard]] Instant now() noexcept;
    // Takes a turn for a caller that polls: what was posted leaves, then what came is delivered.
    void poll_turn() noexcept;
    // A request was posted. It leaves at once if the caller is not one that polls right after it posts, or with the
    // poll otherwise.
    void on_posted(std::uint64_t bytes) noexcept;
    // Something changed that peers or sleepers wait for: sends what is due and tells channels.
    void settle() noexcept;
    // An event came that the descriptor does not show yet. It shows it at the end of the turn.
    void add_event(EventCount& count) noexcept;
    void forget_events(EventCount& count) noexcept;
    // A completion queue was armed: its owner is about to sleep, and the helper looks at the socket from now on.
    void on_armed() noexcept;
    // It fired, or ended.
    void on_disarmed() noexcept { --armed_; }

private:
    Adapter(std::unique_ptr<port::UringPort> port, int wake_fd) noexcept;
    void run_helper() noexcept;
    [[nodiscard]] bool guard_turns() noexcept;
    void send_posted(Instant now) noexcept;
    void show_events() noexcept;
    void wake_helper() noexcept;
    void sleep_until(Instant due, Instant now, bool on_socket) noexcept;

    Lock lock_;
    std::unique_ptr<port::UringPort> port_;
    std::unique_ptr<worker::Worker> worker_;
    SteadyTime time_;
    EventCount* to_show_ = nullptr;  // the first of those that have something to show
    HelperPolicy policy_;
    Instant last_caller_turn_{-seconds(1).ns};
    Instant last_post_{};
    std::uint32_t armed_ = 0;       // completion queues
    bool posted_ = false;           // requests wait for the next turn's send
    std::int8_t polls_behind_ = 0;  // how often posts were followed by a poll at once, saturating
    const int wake_fd_;
    int socket_fd_ = -1;
    std::atomic<bool> ends_{false};
    std::thread helper_;
};

}  // namespace cairn::ibverbs
