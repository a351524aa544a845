// Wakes one sleeper from other threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/base/doorbell.hpp"
#include "lib/base/result.hpp"

namespace cairn {

// Makes a system call only while its owner sleeps.
class Wakeup {
public:
    // Makes a wakeup. Errors: the process has no descriptor left.
    static Result<std::unique_ptr<Wakeup>> create();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;
    ~Wakeup();

    // Returns a descriptor that is readable once wake() found the owner about to sleep.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Announces a sleep. The owner calls it before it looks a last time for work, and then sleeps. A second call before
    // end_sleep() does nothing, since a wake in between has made the descriptor readable.
    void begin_sleep() noexcept {
        if (!std::exchange(sleeps_, true)) {
            word_.begin_sleep();
        }
    }
    void end_sleep() noexcept;
    // Wakes the owner if it sleeps. Any thread may call it, after it has made the work that the owner would look for.
    void wake() noexcept { (void)ring(word_, fd_); }

private:
    explicit Wakeup(int fd) noexcept : fd_(fd) {}

    int fd_;
    DoorbellWord word_{};
    bool sleeps_ = false;     // since begin_sleep(); only the owner uses it
    std::uint64_t owed_ = 0;  // wakes whose write was not yet read
};

}  // namespace cairn
