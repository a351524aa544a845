#include "lib/worker/sleep.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::worker {

namespace {

constexpr std::size_t kHeardAtOnce = 32;  // any more end the next sleep, too

bool watch(int epoll_fd, int fd, std::uint32_t events, Doorbell* bell = nullptr) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.ptr = bell;
    return epoll_fd >= 0 && fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void close_if_open(int& fd) noexcept {
    if (fd >= 0) {
        close(std::exchange(fd, -1));
    }
}

Error no_descriptor(const char* what, const std::string& worker, int reason) {
    return {fmt::format("cannot make a {} for {}: {}", what, worker, std::strerror(reason)),
            "raise the limit of open files (ulimit -n)"};
}

}  // namespace

Doorbell::~Doorbell() {
    sleep_.remove(*this);
    word_.end_sleep();  // a process that still rings makes no system call
    close(fd_);
}

Sleep::~Sleep() {
    CAIRN_ASSERT(bells_.empty());
    close_if_open(loop_fd_);
    close_if_open(bells_fd_);
}

void Sleep::begin() noexcept {
    if (std::exchange(begun_, true)) {
        return;
    }
    mail_.begin_sleep();
    for (Doorbell* const bell : bells_) {
        bell->word_.begin_sleep();
    }
}

void Sleep::end() noexcept {
    begun_ = false;
    if (!bells_.empty()) {
        hear();
    }
    mail_.end_sleep();
}

// Hears a ring once, as it comes (EPOLLET), since its descriptor stays readable for ever. The ring's write may come
// after this, and then ends the next sleep.
void Sleep::hear() noexcept {
    for (Doorbell* const bell : bells_) {
        bell->word_.end_sleep();
    }
    std::array<epoll_event, kHeardAtOnce> events;
    const int count = epoll_wait(bells_fd_, events.data(), static_cast<int>(events.size()), 0);
    for (const epoll_event& each : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
        if (each.data.ptr != nullptr) {  // else it is mail
            ++static_cast<Doorbell*>(each.data.ptr)->wakes_;
        }
    }
}

Result<int> Sleep::descriptor(int of_port, const std::string& worker) {
    if (loop_fd_ < 0) {
        loop_fd_ = epoll_create1(EPOLL_CLOEXEC);
        if (!watch(loop_fd_, of_port, EPOLLIN) || !watch(loop_fd_, mail_.fd(), EPOLLIN) ||
            (bells_fd_ >= 0 && !watch(loop_fd_, bells_fd_, EPOLLIN))) {
            const int reason = errno;
            close_if_open(loop_fd_);
            return no_descriptor("descriptor", worker, reason);
        }
    }
    return loop_fd_;
}

bool Sleep::open_bells() noexcept {
    if (bells_fd_ < 0) {
        bells_fd_ = epoll_create1(EPOLL_CLOEXEC);
        if (!watch(bells_fd_, mail_.fd(), EPOLLIN) || (loop_fd_ >= 0 && !watch(loop_fd_, bells_fd_, EPOLLIN))) {
            const int reason = errno;
            close_if_open(bells_fd_);
            errno = reason;
        }
    }
    return bells_fd_ >= 0;
}

Result<std::unique_ptr<Doorbell>> Sleep::add(DoorbellWord& word, const std::string& worker) {
    int fd = open_bells() ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
    if (fd < 0) {
        return no_descriptor("doorbell", worker, errno);
    }
    std::unique_ptr<Doorbell> bell(new Doorbell(*this, word, fd));
    bells_.push_back(bell.get());
    if (!watch(bells_fd_, fd, EPOLLIN | EPOLLET, bell.get())) {
        return no_descriptor("doorbell", worker, errno);
    }
    if (begun_) {
        word.begin_sleep();
    } else {
        word.end_sleep();
    }
    return bell;
}

// The other process holds the descriptor open, so that closing it here does not take it out of the epoll.
void Sleep::remove(Doorbell& bell) noexcept {
    epoll_ctl(bells_fd_, EPOLL_CTL_DEL, bell.fd_, nullptr);
    std::erase(bells_, &bell);
}

}  // namespace cairn::worker
