// Mail: what any thread asks a worker to do on its own thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/mailbox.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::worker {

class Worker;

// Belongs to its sender, who keeps it until one of the two was called; they may end it, or send it again.
class Letter {
public:
    Letter() = default;
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    // On the worker's thread, in its turn.
    virtual void open(Worker& worker, Instant now) noexcept = 0;
    // The worker ended before it could open it. On the thread that ends the worker.
    virtual void discard() noexcept = 0;

    MailLink<Letter> mail;  // the mailbox's

protected:
    ~Letter() = default;
};

// Wakes one sleeper from other threads, by a system call only while it sleeps.
class Wakeup {
public:
    // Errors: the process has no descriptor left.
    static Result<std::unique_ptr<Wakeup>> create();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;
    ~Wakeup();

    // Readable once wake() found the owner about to sleep.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // By the owner, before it looks a last time for what there is to do, and then sleeps.
    void begin_sleep() noexcept { asleep_.exchange(true, std::memory_order_acq_rel); }
    void end_sleep() noexcept;
    // Any thread, after it has made what the owner would look for.
    void wake() noexcept;

private:
    explicit Wakeup(int fd) noexcept : fd_(fd) {}

    int fd_;
    std::atomic<bool> asleep_{false};
    std::uint64_t owed_ = 0;  // wakes whose write was not read yet
};

// Where a worker gets its mail; outlives it.
class Address {
public:
    Address() = default;

    // Errors: the worker has ended; the letter stays the sender's. Any thread.
    Status send(Letter& letter) const;
    // Any thread.
    [[nodiscard]] bool ended() const noexcept;
    // Letters may come from now on: the worker sleeps so that they wake it, from its next sleep on. Any thread.
    void expect_mail() const noexcept;
    [[nodiscard]] bool operator==(const Address& other) const noexcept { return office_ == other.office_; }

private:
    friend class Worker;
    struct Office {
        std::string worker;  // its name
        Mailbox<Letter> box;
        std::unique_ptr<Wakeup> wakeup;
        std::atomic<bool> ended{false};
        std::atomic<bool> expects_mail{false};
    };

    std::shared_ptr<Office> office_;
};

}  // namespace cairn::worker
