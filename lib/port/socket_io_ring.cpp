// SocketIo by io_uring.
#include <fmt/format.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/port/socket_io.hpp"

namespace cairn::port {

namespace {

constexpr unsigned kIdleMs = 2000;  // after which the kernel's submitter sleeps
// A ring saves entries into the kernel and does more per message: it pays for several messages at once.
constexpr std::size_t kSendsByCall = 1;

// liburing 2.3 declares io_uring_enable_rings() and does not export it.
long enable(const io_uring& ring) noexcept {
    return syscall(__NR_io_uring_register, ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

class RingIo final : public SocketIo {
public:
    RingIo(int fd, SocketMode mode) noexcept : fd_(fd), sqpoll_(mode == SocketMode::Sqpoll) {}

    // 0, or -errno. Disabled at first: the thread that enables the ring is the only one that may use it.
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

    // A ring holds its registered socket for a while after the process is gone, and the port with it.
    ~RingIo() override {
        if (open_) {
            io_uring_unregister_files(&ring_);
            io_uring_queue_exit(&ring_);
        }
    }

    void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept override {
        if (sends.size() <= kSendsByCall && !sqpoll_) {
            exchange_by_calls(fd_, sends, receive);
            return;
        }
        if (!enabled_) [[unlikely]] {
            CAIRN_ASSERT(enable(ring_) == 0);
            io_uring_register_ring_fd(&ring_);  // saves a lookup per enter; refused, it works without
            enabled_ = true;
        }
        unsigned expected = 0;
        for (SocketMessage& each : sends) {
            io_uring_sqe* const entry = next_entry(each);
            io_uring_prep_sendmsg(entry, 0, &each.header, MSG_DONTWAIT | MSG_NOSIGNAL);
            finish_entry(entry, each);
            ++expected;
        }
        if (receive != nullptr) {
            io_uring_sqe* const entry = next_entry(*receive);
            io_uring_prep_recvmsg(entry, 0, &receive->header, MSG_DONTWAIT);
            finish_entry(entry, *receive);
            ++expected;
        }
        if (expected != 0) {
            collect(expected);
        }
    }

    [[nodiscard]] std::string describe() const override {
        return sqpoll_ ? "io_uring, submitted by a kernel thread" : "io_uring, single messages by system calls";
    }

private:
    [[nodiscard]] io_uring_sqe* next_entry(SocketMessage& message) noexcept {
        message.result = -EIO;
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        CAIRN_ASSERT(entry != nullptr);  // all earlier ones were collected
        return entry;
    }
    static void finish_entry(io_uring_sqe* entry, SocketMessage& message) noexcept {
        entry->flags |= IOSQE_FIXED_FILE;
        io_uring_sqe_set_data(entry, &message);
    }
    // Nothing here waits in the kernel: MSG_DONTWAIT completes at once.
    void collect(unsigned expected) noexcept {
        int submitted = sqpoll_ ? io_uring_submit(&ring_) : io_uring_submit_and_wait(&ring_, expected);
        while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY) {
            submitted = io_uring_submit_and_wait(&ring_, expected);
        }
        while (expected != 0) {
            io_uring_cqe* done = nullptr;
            if (io_uring_peek_cqe(&ring_, &done) != 0) {
                continue;  // the submitter thread is at it
            }
            static_cast<SocketMessage*>(io_uring_cqe_get_data(done))->result = done->res;
            io_uring_cqe_seen(&ring_, done);
            --expected;
        }
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
