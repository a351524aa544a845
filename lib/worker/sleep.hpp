// Sleep: what ends a worker's sleep beside its port. Mail of the process's other threads, and doorbells of other
// processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/doorbell.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wakeup.hpp"

namespace cairn::worker {

class Sleep;

// By a doorbell another process wakes a worker that sleeps or naps. It belongs to the tenant that the other process
// talks to. The tenant takes every turn, and its next_deadline() is past while a request lies unread: the worker asks
// it once more before it sleeps. Made and ended on the worker's thread; the worker outlives it.
class Doorbell {
public:
    Doorbell(const Doorbell&) = delete;
    Doorbell& operator=(const Doorbell&) = delete;
    ~Doorbell();

    // Returns the descriptor to hand to the process that rings (SCM_RIGHTS). The worker waits for it and never reads
    // it, so that nothing done to it keeps the worker from other doorbells.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Returns how often the worker was found to have been woken by it.
    [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_; }

private:
    friend class Sleep;
    Doorbell(Sleep& sleep, DoorbellWord& word, int fd) noexcept : sleep_(sleep), word_(word), fd_(fd) {}

    Sleep& sleep_;
    DoorbellWord& word_;
    const int fd_;
    std::uint64_t wakes_ = 0;
};

// One thread at a time, as the worker.
class Sleep {
public:
    // The mail's wakeup outlives it.
    explicit Sleep(Wakeup& mail) noexcept : mail_(mail) {}
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();  // all doorbells have ended (asserted)

    // Before the worker looks a last time for what there is to do, and then sleeps. Again before end(), it does
    // nothing.
    void begin() noexcept;
    [[nodiscard]] bool has_begun() const noexcept { return begun_; }
    void end() noexcept;

    // Returns a descriptor that is readable once mail or a doorbell is to end the sleep; -1: neither can come.
    [[nodiscard]] int fd(bool has_mail) const noexcept {
        return !bells_.empty() ? bells_fd_ : has_mail ? mail_.fd() : -1;
    }
    // Returns a descriptor that is readable also when `of_port` is. Errors: the process has no descriptor left.
    Result<int> descriptor(int of_port, const std::string& worker);
    // Errors: the process has no descriptor left.
    Result<std::unique_ptr<Doorbell>> add(DoorbellWord& word, const std::string& worker);

private:
    friend class Doorbell;
    [[nodiscard]] bool open_bells() noexcept;
    void remove(Doorbell& bell) noexcept;
    void hear() noexcept;

    Wakeup& mail_;
    std::vector<Doorbell*> bells_;
    int bells_fd_ = -1;  // an epoll of mail and doorbells, from the first doorbell on
    int loop_fd_ = -1;   // an epoll of those and the port, for event loops
    bool begun_ = false;
};

}  // namespace cairn::worker
