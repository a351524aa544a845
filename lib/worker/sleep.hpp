// Sleep: lets mail of the process's other threads and doorbells of other processes end a worker's sleep, in addition to
// its port.
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

// A doorbell lets another process wake a worker that sleeps or naps. It belongs to the tenant that the other process
// talks to. The tenant takes every turn, and its next_deadline() is past while a request lies unread. The worker asks
// for it once more before it sleeps. A doorbell is made and ended on the worker's thread; the worker outlives it.
class Doorbell {
public:
    Doorbell(const Doorbell&) = delete;
    Doorbell& operator=(const Doorbell&) = delete;
    ~Doorbell();

    // Returns the descriptor to hand to the process that rings (SCM_RIGHTS). The worker waits for it and never reads
    // it. So whatever is done to it does not keep the worker from other doorbells.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Returns how many times the worker found that this doorbell had woken it.
    [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_; }

private:
    friend class Sleep;
    Doorbell(Sleep& sleep, DoorbellWord& word, int fd) noexcept : sleep_(sleep), word_(word), fd_(fd) {}

    Sleep& sleep_;
    DoorbellWord& word_;
    const int fd_;
    std::uint64_t wakes_ = 0;
};

// One thread at a time uses it, as with the worker.
class Sleep {
public:
    // Makes a sleep that mail ends by `mail`, which outlives it.
    explicit Sleep(Wakeup& mail) noexcept : mail_(mail) {}
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();  // all doorbells have ended (asserted)

    // Announces a sleep. The worker calls it before it looks a last time for work, and then sleeps. A second call
    // before end() does nothing.
    void begin() noexcept;
    [[nodiscard]] bool has_begun() const noexcept { return begun_; }
    void end() noexcept;

    // Returns a descriptor that is readable once mail or a doorbell is to end the sleep; -1 if neither can come.
    [[nodiscard]] int fd(bool has_mail) const noexcept {
        return !bells_.empty() ? bells_fd_ : has_mail ? mail_.fd() : -1;
    }
    // Returns a descriptor that is also readable when `of_port` is. Errors: the process has no descriptor left.
    Result<int> descriptor(int of_port, const std::string& worker);
    // Adds a doorbell. Errors: the process has no descriptor left.
    Result<std::unique_ptr<Doorbell>> add(DoorbellWord& word, const std::string& worker);

private:
    friend class Doorbell;
    [[nodiscard]] bool open_bells() noexcept;
    void remove(Doorbell& bell) noexcept;
    void hear() noexcept;

    Wakeup& mail_;
    std::vector<Doorbell*> bells_;
    int bells_fd_ = -1;  // an epoll of mail and doorbells, from the first doorbell on
    int loop_fd_ = -1;   // an epoll of mail, doorbells and the port, for event loops
    bool begun_ = false;
};

}  // namespace cairn::worker
