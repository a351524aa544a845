// Wakes one sleeper from other threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/base/doorbell.hpp"
#include "lib/base/result.hpp"

namespace cairn {

// By a system call only while its owner sleeps.
class Wakeup {
public:
    // Errors: the process has no descriptor left.
    static Result<std::unique_ptr<Wakeup>> create();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;
    ~Wakeup();

    // Readable once wake() found the owner about to sleep.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // By the owner, before it looks a last time for what there is to do, and then sleeps. Again before end_sleep(), it
    // does nothing: a wake that came meanwhile has made the descriptor readable.
    // mutants: base-wakeup-begin-sleep
    void begin_sleep() noexcept {
        if (!std::exchange(sleeps_, true)) {
            word_.begin_sleep();
        }
    }
    void end_sleep() noexcept;
    // Any thread, after it has made what the owner would look for.
    void wake() noexcept { (void)ring(word_, fd_); }

private:
    explicit Wakeup(int fd) noexcept : fd_(fd) {}

    int fd_;
    DoorbellWord word_{};
    bool sleeps_ = false;     // the owner's: since begin_sleep()
    std::uint64_t owed_ = 0;  // wakes whose write was not read yet
};

}  // namespace cairn
