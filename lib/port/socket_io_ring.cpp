// SocketIo by io_uring.
#include <fmt/format.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "lib/base/assert.hpp"
#include "lib/port/socket_io.hpp"

namespace cairn::port {

namespace {

constexpr unsigned kIdleMs = 2000;  // after which the kernel's submitter sleeps
// A ring saves entries into the kernel and does more per message. So it pays for several messages at once.
constexpr std::size_t kSendsByCall = 1;
constexpr unsigned kEnters = 10'000;  // for one exchange; one should be enough
constexpr unsigned kPolls = 100'000;  // for the kernel's submitter, before it is called

// liburing 2.3 declares io_uring_enable_rings() and does not export it.
long enable(const io_uring& ring) noexcept {
    return syscall(__NR_io_uring_register, ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

class RingIo final : public SocketIo {
public:
    RingIo(int fd, SocketMode mode) noexcept : fd_(fd), sqpoll_(mode == SocketMode::Sqpoll) {}

    // Returns 0, or -errno. The ring is disabled at first: the thread that enables it is the only one that may use it.
    int open(std::uint32_t sends_max) noexcept {
        io_uring_params params{};
        params.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP;
        if (sqpoll_) {
            params.flags |= IORING_SETUP_SQPOLL;
            params.sq_thread_idle = kIdleMs;
        } else {
            params.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        }
        int failed = io_uring_queue_init_params(sends_max + 1, &ring_, &params);
        if (failed == -EINVAL && !sqpoll_) {  // before Linux 6.1
            params.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP | IORING_SETUP_COOP_TASKRUN;
            failed = io_uring_queue_init_params(sends_max + 1, &ring_, &params);
        }
        if (failed != 0) {
            return failed;
        }
        open_ = true;
        return io_uring_register_files(&ring_, &fd_, 1);
    }

    // Unregisters the socket. A ring holds its registered socket for a while after the process is gone, and the port
    // with it.
    ~RingIo() override {
        if (open_) {
            give_up();
        }
    }

    void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept override {
        if (!open_ || (sends.size() <= kSendsByCall && !sqpoll_)) {
            exchange_by_calls(fd_, sends, receive);
            return;
        }
        while (!sends.empty() || receive != nullptr) {
            queue(sends, receive);
            if (!collect(static_cast<unsigned>(sends.size() + (receive != nullptr ? 1U : 0U)))) [[unlikely]] {
                give_up();
                exchange_by_calls(fd_, from_first(sends, kUntouched),
                                  receive != nullptr && receive->result == kUntouched ? receive : nullptr);
                return;
            }
            sends = left_of(sends);
            receive = nullptr;
        }
    }

    [[nodiscard]] std::string describe() const override {
        return !open_    ? "plain system calls, since io_uring failed"
               : sqpoll_ ? "io_uring, submitted by a kernel thread"
                         : "io_uring, single messages by system calls";
    }

private:
    static constexpr std::int32_t kUntouched = std::numeric_limits<std::int32_t>::min();

    [[nodiscard]] static std::span<SocketMessage> from_first(std::span<SocketMessage> messages,
                                                             std::int32_t result) noexcept {
        const auto found = std::find_if(messages.begin(), messages.end(),
                                        [result](const SocketMessage& each) { return each.result == result; });
        return {found, messages.end()};
    }
    // Returns the sends that are still to be done. A send that the kernel refuses ends its chain, and the rest goes on
    // without it. After a send that found no room the rest waits, too. A malformed send ends its chain before it
    // begins.
    [[nodiscard]] std::span<SocketMessage> left_of(std::span<SocketMessage> chain) const noexcept {
        const std::span<SocketMessage> left = from_first(chain, -ECANCELED);
        if (left.empty()) [[likely]] {
            return {};
        }
        if (left.size() == chain.size()) {
            exchange_by_calls(fd_, left, nullptr);
            return {};
        }
        if (!chain[chain.size() - left.size() - 1].found_no_room()) {
            return left;
        }
        for (SocketMessage& each : left) {
            each.result = -EAGAIN;
        }
        return {};
    }
    // Links the sends: each one waits for the one before it, and is cancelled with it.
    void queue(std::span<SocketMessage> sends, SocketMessage* receive) noexcept {
        for (SocketMessage& each : sends) {
            io_uring_sqe* const entry = next_entry(each);
            io_uring_prep_sendmsg(entry, 0, &each.header, MSG_DONTWAIT | MSG_NOSIGNAL);
            finish_entry(entry, each, &each != &sends.back() ? IOSQE_IO_LINK : 0U);
        }
        if (receive != nullptr) {
            io_uring_sqe* const entry = next_entry(*receive);
            io_uring_prep_recvmsg(entry, 0, &receive->header, MSG_DONTWAIT);
            finish_entry(entry, *receive, 0);
        }
    }
    [[nodiscard]] io_uring_sqe* next_entry(SocketMessage& message) noexcept {
        message.result = kUntouched;
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        CAIRN_ASSERT(entry != nullptr);  // all earlier ones were collected
        return entry;
    }
    static void finish_entry(io_uring_sqe* entry, SocketMessage& message, unsigned link) noexcept {
        entry->flags = static_cast<std::uint8_t>(entry->flags | IOSQE_FIXED_FILE | link);
        io_uring_sqe_set_data(entry, &message);
    }
    // Collects results. The sends and receives do not wait in the kernel: MSG_DONTWAIT completes at once. Returns false
    // if the kernel no longer takes entries, as from another thread than the first, or when its own thread is gone.
    [[nodiscard]] bool collect(unsigned expected) noexcept {
        if (!enabled_) [[unlikely]] {
            if (enable(ring_) != 0) {
                return false;
            }
            io_uring_register_ring_fd(&ring_);  // saves a lookup per enter; a refusal does no harm
            enabled_ = true;
        }
        int entered = sqpoll_ ? io_uring_submit(&ring_) : io_uring_submit_and_wait(&ring_, expected);
        unsigned polls = 0;
        for (unsigned enters = 0; enters < kEnters;) {
            io_uring_cqe* done = nullptr;
            while (expected != 0 && io_uring_peek_cqe(&ring_, &done) == 0) {
                static_cast<SocketMessage*>(io_uring_cqe_get_data(done))->result = done->res;
                io_uring_cqe_seen(&ring_, done);
                --expected;
            }
            if (expected == 0) [[likely]] {
                return true;
            }
            if (entered < 0 && entered != -EINTR && entered != -EAGAIN && entered != -EBUSY) {
                return false;
            }
            if (!sqpoll_ || ++polls % kPolls == 0) {  // else the submitter thread works on it
                entered = io_uring_submit_and_wait(&ring_, 1);
                ++enters;
            }
        }
        return false;
    }
    void give_up() noexcept {
        io_uring_unregister_files(&ring_);
        io_uring_queue_exit(&ring_);
        open_ = false;
    }

    io_uring ring_{};
    int fd_;
    bool sqpoll_;
    bool open_ = false;
    bool enabled_ = false;
};

Error explain(int reason) {
    const std::string what = fmt::format("the kernel refuses io_uring: {}", std::strerror(reason));
    switch (reason) {
        case EPERM:
            return {what, "it is disabled for this user: sysctl kernel.io_uring_disabled=0, or allow it in seccomp"};
        case ENOMEM:
            return {what, "raise the limit of locked memory (ulimit -l)"};
        default:
            return {what, "use a Linux kernel of 5.19 or later"};
    }
}

}  // namespace

Result<std::unique_ptr<SocketIo>> SocketIo::make_ring(int fd, SocketMode mode, std::uint32_t sends_max) {
    CAIRN_ASSERT(mode != SocketMode::Plain);
    auto ring = std::make_unique<RingIo>(fd, mode);
    if (const int failed = ring->open(sends_max); failed != 0) {
        return explain(-failed);
    }
    return std::unique_ptr<SocketIo>(std::move(ring));
}

}  // namespace cairn::port
