#include "lib/ibverbs/adapter.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "lib/base/secret.hpp"
#include "lib/broker/start.hpp"

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

using Owed = roce::Engine::Owed;

constexpr int kMostGuardTurns = 64;             // in a row, with the lock held
constexpr int kMostFlushTurns = 16;             // likewise
constexpr int kMostHeldTurns = 6;               // while more packets come
constexpr Duration kHold = microseconds(20);    // an acknowledgement, for a request to leave with
constexpr Duration kPosts = microseconds(100);  // who posts does so more often than this
constexpr Duration kBusy = microseconds(3);     // after which the helper tries the lock again
constexpr Duration kActive = milliseconds(1);   // who calls does so more often than this
constexpr Duration kLong = seconds(3600);

}  // namespace

Adapter::Adapter(std::unique_ptr<broker::Membership> membership, std::unique_ptr<port::UringPort> port,
                 int wake_fd) noexcept
    : membership_(std::move(membership)), port_(std::move(port)), wake_fd_(wake_fd) {}

namespace {

Result<std::unique_ptr<port::UringPort>> open_port(const AdapterConfig& config, const broker::Joined& joined) {
    port::UringPortConfig of_port;
    of_port.local = config.local;
    of_port.mode = port::SocketMode::Plain;  // a ring belongs to one thread, and containers refuse it
    of_port.pcap = config.pcap;
    if (joined.membership != nullptr) {
        return port::UringPort::open(of_port, joined.membership->queues(), joined.membership->slot().value);
    }
    Result<std::unique_ptr<port::UringPort>> port = port::UringPort::open(of_port);
    if (port.ok()) {
        return port;
    }
    const Error& refused = port.error();
    return Error{refused.what, refused.remedy + " (it cannot be shared: " + joined.why_alone + ")"};
}

}  // namespace

Result<std::shared_ptr<Adapter>> Adapter::open(const AdapterConfig& config) {
    broker::MembershipConfig of_membership;
    of_membership.place.local = config.local;
    of_membership.program = broker::find_program();
    of_membership.pcap = config.pcap;
    Result<broker::Joined> joined = broker::Membership::join(of_membership);
    if (!joined.ok()) {
        return joined.error();
    }
    Result<std::unique_ptr<port::UringPort>> port = open_port(config, joined.value());
    if (!port.ok()) {
        return port.error();
    }
    const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) {
        return Error{std::string("cannot make an event descriptor: ") + std::strerror(errno),
                     "raise the limit of open files (ulimit -n)"};
    }
    std::shared_ptr<Adapter> made(new Adapter(std::move(joined.value().membership), std::move(port).value(), wake_fd));
    roce::EngineConfig of_engine;
    if (made->membership_ != nullptr) {
        constexpr port::QpnOwners kOwners(broker::kMostSockets);
        of_engine.owner_bits = kOwners.bits();
        of_engine.owner = made->membership_->slot().value;
    }
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

void Adapter::give_out(Instant now) noexcept {
    held_turns_ = 0;
    worker_->give_out(now);
}

// For one turn more. Nothing but acknowledgements is owed.
bool Adapter::may_hold() noexcept {
    return !posts_.any_waiting() && engine().owed() == Owed::Acknowledgements && ++held_turns_ < kMostHeldTurns;
}

// A queue pair sends some packets in its turn, and there may be more. The helper goes on with what is left.
void Adapter::flush(Instant now) noexcept {
    int turns = 0;
    do {
        give_out(now);
    } while (owes() && ++turns < kMostFlushTurns);
    port_->wait(Duration{}, -1);  // sends now what a turn would leave for the next one
    // It sleeps until what was due when it fell asleep, and callers may sleep next.
    if (!helper_comes_soon(now) && (owes() || worker_->next_deadline() < sleeps_until_)) [[unlikely]] {
        sleeps_until_ = now;
        wake_helper();
    }
}

// What was posted leaves in the same system call as what the turn before made due. Acknowledgements wait for as long as
// more packets come, for a few turns: one covers all.
void Adapter::poll_turn() noexcept {
    const Instant now = this->now();
    const bool wakes_helper = policy_.on_caller_turn(now, last_call_, armed_ != 0);
    last_call_ = now;
    const bool bounded = helper_comes_soon(now);
    const bool holds = bounded && may_hold();
    if (!holds && owes()) {
        give_out(now);
    }
    posts_.on_poll(now);
    const bool found = worker_->take_in(now);
    if (found && !bounded) {
        flush(now);
    } else if (holds && !found) {
        give_out(now);
        port_->wait(Duration{}, -1);
    }
    show_events();
    if (wakes_helper) [[unlikely]] {
        wake_helper();
    }
}

void Adapter::on_posted(std::uint64_t bytes) noexcept {
    const Instant now = posts_.any_waiting() ? Instant{} : this->now();
    if (posts_.on_post(bytes, now, posts_.any_waiting() || helper_comes_soon(now))) {
        flush(this->now());
        last_call_ = this->now();
        posts_.on_sent(last_call_);
        show_events();
    }
}

void Adapter::settle() noexcept {
    const Instant now = this->now();
    posts_.on_sent_by_other(now);
    worker_->turn(now);
    flush(now);
    show_events();
}

void Adapter::on_armed() noexcept {
    if (armed_++ == 0 && is_parked()) {
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

// Takes turns until there is nothing to do. Returns true if packets had come. `holds`: acknowledgements are owed, and a
// caller that posts often may post soon.
bool Adapter::guard_turns(bool& holds) noexcept {
    bool found = false;
    bool more = true;
    posts_.on_sent_by_other(this->now());
    for (int turns = 0; more && turns < kMostGuardTurns; ++turns) {
        const Instant now = this->now();
        more = worker_->take_in(now);
        found = found || more;
        holds = found && !more && now - posts_.last_post() < kPosts && engine().owed() == Owed::Acknowledgements;
        if (!holds && !(more && may_hold())) {
            give_out(now);
        }
        show_events();
    }
    return found;
}

// Returns whether packets, or somebody, ended the sleep.
bool Adapter::sleep_until(const Rest& rest) noexcept {
    std::array<pollfd, 2> waiting{{{wake_fd_, POLLIN, 0}, {socket_fd_, POLLIN, 0}}};
    timespec left{};
    const std::int64_t ns = std::max<std::int64_t>((rest.due - read_clock()).ns, 0);
    left.tv_sec = ns / 1'000'000'000;
    left.tv_nsec = ns % 1'000'000'000;
    ppoll(waiting.data(), rest.on_socket && socket_fd_ >= 0 ? 2 : 1, rest.due == Instant::never() ? nullptr : &left,
          nullptr);
    if ((waiting[0].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        static_cast<void>(read(wake_fd_, &count, sizeof(count)));
    }
    return (waiting[1].revents & POLLIN) != 0;
}

// Needs the lock. `woken`: by the socket.
Adapter::Rest Adapter::take_helper_turn(bool woken) noexcept {
    const Instant last = last_call_;
    const bool parked = is_parked();
    const bool callers_poll = parked && this->now() - last < HelperPolicy::kPolls;
    bool holds = false;
    const bool found = !callers_poll && guard_turns(holds);
    const Instant now = this->now();
    if (parked) {
        policy_.on_nap_end(now, last, found);
    } else if (woken) {
        policy_.on_wake(found);
    }
    if (policy_.decide(now, last, armed_ != 0) == HelperPolicy::Mode::Park) {
        return {now + HelperPolicy::kNap, false};
    }
    if (!holds) {
        flush(now);
    }
    const Instant due = worker_->prepare_sleep(now);
    const Duration longest = holds ? kHold : now - last < kActive ? HelperPolicy::kNap : kLong;
    return {std::min(due, now + longest), true};
}

void Adapter::run_helper() noexcept {
    pthread_setname_np(pthread_self(), "cairn-helper");
    prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds; naps are to end in time
    bool woken = false;
    while (!ends_.load(std::memory_order_acquire)) {
        Rest rest;
        if (lock_.lock_soon()) {
            const std::lock_guard hold(lock_, std::adopt_lock);
            rest = take_helper_turn(woken);
            sleeps_until_ = rest.due;
        } else {
            // Somebody is at it: no reason to guard now.
            rest.due = read_clock() + (is_parked() ? HelperPolicy::kNap : kBusy);
        }
        woken = sleep_until(rest);
    }
}

}  // namespace cairn::ibverbs
