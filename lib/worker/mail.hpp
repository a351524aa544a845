// Mail: work that any thread gives to a worker, which does the work on its own thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lib/base/mailbox.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/base/wakeup.hpp"

namespace cairn::worker {

class Worker;

// A letter belongs to its sender. The sender keeps it until open() or discard() was called; either may destroy it or
// send it again.
class Letter {
public:
    Letter() = default;
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    // Does the work. Called on the worker's thread, in its turn.
    virtual void open(Worker& worker, Instant now) noexcept = 0;
    // Drops the work. Called if the worker ends before it opens the letter, on the thread that ends the worker.
    virtual void discard() noexcept = 0;

    MailLink<Letter> mail;  // the link of the mailbox

protected:
    ~Letter() = default;
};

// The place to which a worker's letters are sent. An address stays valid after the worker has ended.
class Address {
public:
    Address() = default;

    // Sends the letter. Errors: the worker has ended; the letter then stays the sender's. Any thread may call it.
    Status send(Letter& letter) const;
    // Returns true if the worker has ended. Any thread may call it.
    [[nodiscard]] bool ended() const noexcept;
    // Announces letters. From its next sleep on the worker sleeps so that a letter wakes it. Any thread may call it.
    void expect_mail() const noexcept;
    [[nodiscard]] bool operator==(const Address& other) const noexcept { return office_ == other.office_; }

private:
    friend class Worker;
    struct Office {
        std::string worker;  // name of the worker
        Mailbox<Letter> box;
        std::unique_ptr<Wakeup> wakeup;
        std::atomic<bool> ended{false};
        std::atomic<bool> expects_mail{false};
    };

    std::shared_ptr<Office> office_;
};

}  // namespace cairn::worker
