#include "lib/ibverbs/adapter.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "lib/base/secret.hpp"

namespace cairn::ibverbs {

namespace {

Instant read_clock() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

// The program's signals are for its own threads.
class NoSignals {
public:
    NoSignals() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

constexpr std::int8_t kSurePolls = 4;             // so many polls behind posts in a row show a caller that polls
constexpr Duration kPollsSoon = microseconds(2);  // "right after" a post
constexpr std::uint64_t kLargeBytes = 64U << 10U;
constexpr int kMostGuardTurns = 64;  // in a row, with the lock held

}  // namespace

Adapter::Adapter(std::unique_ptr<port::UringPort> port, int wake_fd) noexcept
    : port_(std::move(port)), wake_fd_(wake_fd) {}

Result<std::shared_ptr<Adapter>> Adapter::open(const AdapterConfig& config) {
    port::UringPortConfig of_port;
    of_port.local = config.local;
    of_port.mode = port::SocketMode::Plain;  // a ring belongs to one thread, and containers refuse it
    of_port.pcap = config.pcap;
    Result<std::unique_ptr<port::UringPort>> port = port::UringPort::open(of_port);
    if (!port.ok()) {
        return port.error();
    }
    const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) {
        return Error{std::string("cannot make an event descriptor: ") + std::strerror(errno),
                     "raise the limit of open files (ulimit -n)"};
    }
    std::shared_ptr<Adapter> made(new Adapter(std::move(port).value(), wake_fd));
    roce::EngineConfig of_engine;
    of_engine.max_regions = roce::kMaxRegions;
    of_engine.seed = draw_secret();
    Result<std::unique_ptr<worker::Worker>> worker = worker::Worker::create(*made->port_, of_engine, made->now());
    if (!worker.ok()) {
        return worker.error();
    }
    made->worker_ = std::move(worker).value();
    made->socket_fd_ = made->port_->descriptor();
    try {
        const NoSignals blocked;
        made->helper_ = std::thread([adapter = made.get()] { adapter->run_helper(); });
    } catch (const std::system_error& refused) {
        return Error{std::string("cannot start a thread: ") + refused.what(), "raise the limit of threads (ulimit -u)"};
    }
    return made;
}

Adapter::~Adapter() {
    ends_.store(true, std::memory_order_release);
    wake_helper();
    if (helper_.joinable()) {
        helper_.join();
    }
    if (worker_ != nullptr) {
        settle();
    }
    close(wake_fd_);
}

Instant Adapter::now() noexcept {
    return time_.on_reading(read_clock());
}

void Adapter::send_posted(Instant now) noexcept {
    posted_ = false;
    engine().transmit(now);
    worker_->sender().flush(now);
}

// What was posted leaves in the same system call that looks for packets, beside what the last turn left to send.
void Adapter::poll_turn() noexcept {
    const Instant now = this->now();
    if (posted_) {
        const bool soon = now - last_post_ < kPollsSoon;
        polls_behind_ = static_cast<std::int8_t>(soon ? std::min<int>(polls_behind_ + 1, kSurePolls) : 0);
        send_posted(now);
    }
    last_caller_turn_ = now;
    worker_->turn(now);
    show_events();
}

void Adapter::on_posted(std::uint64_t bytes) noexcept {
    posted_ = true;
    const Instant now = this->now();
    last_post_ = now;
    if (polls_behind_ < kSurePolls || bytes >= kLargeBytes) {
        send_posted(now);
        port_->wait(Duration{}, -1);  // sends now what a turn would leave for the next one
        posted_ = polls_behind_ < kSurePolls;
        show_events();
    }
}

void Adapter::settle() noexcept {
    const Instant now = this->now();
    worker_->turn(now);
    port_->wait(Duration{}, -1);
    posted_ = false;
    show_events();
}

void Adapter::on_armed() noexcept {
    if (armed_++ == 0 && policy_.mode() == HelperPolicy::Mode::Park) {
        wake_helper();
    }
}

void Adapter::add_event(EventCount& count) noexcept {
    if (++count.not_shown == 1) {
        count.next = std::exchange(to_show_, &count);
    }
}

void Adapter::forget_events(EventCount& count) noexcept {
    for (EventCount** link = &to_show_; *link != nullptr; link = &(*link)->next) {
        if (*link == &count) {
            *link = count.next;
            return;
        }
    }
}

void Adapter::show_events() noexcept {
    while (to_show_ != nullptr) {
        EventCount& count = *to_show_;
        to_show_ = count.next;
        if (count.not_shown != 0) {
            count.show();
        }
    }
}

void Adapter::wake_helper() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(write(wake_fd_, &one, sizeof(one)));
}

// Takes turns until there is nothing to do. Returns true if packets had come.
bool Adapter::guard_turns() noexcept {
    bool found = false;
    for (int turns = 0; turns < kMostGuardTurns && worker_->turn(now()); ++turns) {
        found = true;
        show_events();
    }
    show_events();
    if (std::exchange(posted_, false)) {
        polls_behind_ = 0;  // no poll came behind the last post
    }
    return found;
}

void Adapter::sleep_until(Instant due, Instant now, bool on_socket) noexcept {
    std::array<pollfd, 2> waiting{{{wake_fd_, POLLIN, 0}, {socket_fd_, POLLIN, 0}}};
    timespec left{};
    const std::int64_t ns = std::max<std::int64_t>((due - now).ns, 0);
    left.tv_sec = ns / 1'000'000'000;
    left.tv_nsec = ns % 1'000'000'000;
    ppoll(waiting.data(), on_socket && socket_fd_ >= 0 ? 2 : 1, due == Instant::never() ? nullptr : &left, nullptr);
    if ((waiting[0].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        static_cast<void>(read(wake_fd_, &count, sizeof(count)));
    }
}

void Adapter::run_helper() noexcept {
    pthread_setname_np(pthread_self(), "cairn-helper");
    while (!ends_.load(std::memory_order_acquire)) {
        Instant now{};
        Instant due{};
        HelperPolicy::Mode mode{};
        {
            const std::lock_guard hold(lock_);
            const Instant last = last_caller_turn_;
            const bool parked = policy_.mode() == HelperPolicy::Mode::Park;
            const bool callers_poll = parked && this->now() - last < HelperPolicy::kPolls;
            const bool found = !callers_poll && guard_turns();
            now = this->now();
            if (parked) {
                policy_.on_nap_end(now, last, found);
            }
            mode = policy_.decide(now, last, armed_ != 0);
            due = mode == HelperPolicy::Mode::Guard ? worker_->prepare_sleep(now) : now + HelperPolicy::kNap;
        }
        sleep_until(due, now, mode == HelperPolicy::Mode::Guard);
    }
}

}  // namespace cairn::ibverbs
