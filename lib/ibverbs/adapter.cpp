#include "lib/ibverbs/adapter.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "lib/base/blocked_signals.hpp"
#include "lib/base/monotonic_clock.hpp"
#include "lib/base/secret.hpp"
#include "lib/base/thread_limits.hpp"
#include "lib/broker/start.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "lib/ibverbs/uncancelled.hpp"
#include "lib/port/faulty_port.hpp"
#include "lib/port/uring_port.hpp"

namespace cairn::ibverbs {

namespace {

using Owed = roce::Engine::Owed;

constexpr int kMostFlushTurns = 16;  // in a row, with the lock held

}  // namespace

Adapter::Adapter(std::unique_ptr<broker::Membership> membership, std::unique_ptr<port::Port> port, int wake_fd,
                 bool spins) noexcept
    : membership_(std::move(membership)), port_(std::move(port)), policy_(spins), wake_fd_(wake_fd) {}

namespace {

struct Socket {
    std::shared_ptr<port::SocketQueues> queues;
    std::uint32_t slot = 0;
};

Result<Socket> open_socket(const AdapterConfig& config, const broker::Joined& joined) {
    if (joined.membership != nullptr) {
        return Socket{joined.membership->queues(), joined.membership->slot().value};
    }
    port::SocketQueuesConfig alone;
    alone.local = config.local;
    alone.pcap = config.pcap;
    auto queues = port::SocketQueues::open(alone);
    if (queues.ok()) {
        return Socket{std::move(queues).value(), 0};
    }
    const Error& refused = queues.error();
    return Error{refused.what, refused.remedy + " (it cannot be shared: " + joined.why_alone + ")"};
}

Result<std::unique_ptr<port::Port>> open_port(const AdapterConfig& config, const Socket& socket) {
    port::UringPortConfig of_port;
    of_port.mode = port::SocketMode::Plain;  // a ring belongs to one thread, and containers refuse it
    Result<std::unique_ptr<port::UringPort>> opened = port::UringPort::open(of_port, socket.queues, socket.slot);
    if (!opened.ok()) {
        return opened.error();
    }
    std::unique_ptr<port::Port> port = std::move(opened).value();
    if (config.faults.any_of_port()) {
        port = std::make_unique<port::FaultyPort>(std::move(port), config.faults, read_monotonic());
    }
    return port;
}

}  // namespace

Result<std::shared_ptr<Adapter>> Adapter::open(const AdapterConfig& config) {
    if (const Status there = port::check_address(config.local); !there.ok()) {
        return there.error();
    }
    broker::MembershipConfig of_membership;
    of_membership.place.local = config.local;
    of_membership.program = broker::find_program();
    of_membership.pcap = config.pcap;
    Result<broker::Joined> joined = broker::Membership::join(of_membership);
    if (!joined.ok()) {
        return joined.error();
    }
    Result<Socket> socket = open_socket(config, joined.value());
    if (!socket.ok()) {
        return socket.error();
    }
    Result<std::unique_ptr<port::Port>> port = open_port(config, socket.value());
    if (!port.ok()) {
        return port.error();
    }
    const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) {
        return Error{std::string("cannot make an event descriptor: ") + std::strerror(errno),
                     "raise the limit of open files (ulimit -n)"};
    }
    std::shared_ptr<Adapter> made(
        new Adapter(std::move(joined.value().membership), std::move(port).value(), wake_fd, config.spins));
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
        const BlockedSignals blocked({SIGSEGV, SIGBUS});  // signals of memory faults stay unblocked: they are each
                                                          // thread's own
        InUse::add(*made, config.device, {socket.value().queues->lent_socket(), made->socket_fd_, wake_fd});
        made->helper_ = std::thread([adapter = made.get()] { adapter->run_helper(); });
    } catch (const std::system_error& refused) {
        return Error{std::string("cannot start a thread: ") + refused.what(), remedy_for_threads()};
    }
    return made;
}

Adapter::~Adapter() {
    InUse::remove(*this);
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
    return time_.on_reading(read_monotonic());
}

void Adapter::give_out(Instant now) noexcept {
    held_.end();
    worker_->give_out(now);
}

// Takes turns as long as packets are owed, up to a limit: a queue pair sends some packets in its turn, and there may be
// more. The helper goes on with the rest.
void Adapter::flush(Instant now) noexcept {
    int turns = 0;
    bool more = false;
    do {
        give_out(now);
        more = owes(engine().owed());
    } while (more && ++turns < kMostFlushTurns);
    port_->wait(Duration{}, -1);  // sends now what a turn would leave for the next one
    // The helper sleeps until the time that was due when it fell asleep, and callers may sleep next.
    if (!helper_comes_soon(now) && (more || worker_->next_deadline() < sleeps_until_)) [[unlikely]] {
        sleeps_until_ = now;
        wake_helper();
    }
}

// Posted requests leave in the same system call as packets that the turn before made due. Acknowledgements wait as long
// as more packets come, for a few turns: one covers all.
void Adapter::poll_turn() noexcept {
    const Instant now = this->now();
    const HelperPolicy::CallerTurn turn = policy_.on_caller_turn(now, last_call_, armed_ != 0);
    if (turn == HelperPolicy::CallerTurn::NotTaken) [[unlikely]] {
        return;
    }
    last_call_ = now;
    const bool bounded = helper_comes_soon(now);
    const Owed owed = engine().owed();
    const bool holds = bounded && !posts_.any_waiting() && held_.may_go_on(owed);
    if (!holds && owes(owed)) {
        give_out(now);
    }
    posts_.on_poll(now);
    const bool found = worker_->take_in(now);
    if (!bounded) {
        flush(now);  // the helper sleeps, and this look has cleared the port's mark that a thread does
    } else if (holds && !found) {
        give_out(now);
        port_->wait(Duration{}, -1);
    }
    events_.show_all();
    if (turn == HelperPolicy::CallerTurn::WakesHelper) [[unlikely]] {
        wake_helper();
    }
}

void Adapter::on_posted(std::uint64_t bytes) noexcept {
    if (policy_.is_gone()) [[unlikely]] {
        return;
    }
    const bool waits = posts_.any_waiting();
    const Instant now = waits ? Instant{} : this->now();
    if (posts_.on_post(bytes, now, waits || helper_comes_soon(now))) {
        flush(waits ? this->now() : now);
        last_call_ = this->now();
        posts_.on_sent(last_call_);
        events_.show_all();
    }
}

void Adapter::settle() noexcept {
    if (policy_.is_gone()) [[unlikely]] {
        return;
    }
    const Instant now = this->now();
    posts_.on_sent_by_other(now);
    worker_->turn(now);
    flush(now);
    events_.show_all();
}

void Adapter::on_armed() noexcept {
    ++armed_;
    policy_.on_arm();
    if (policy_.is_parked() && !lease_.was_lately(now())) {
        policy_.leave_park();
        wake_helper();
    }
}

void Adapter::orphan() noexcept {
    kept_ = weak_from_this().lock();
    policy_.on_fork();
    socket_fd_ = -1;
}

void Adapter::wake_helper() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(uncancelled::write(wake_fd_, &one, sizeof(one)));
}

}  // namespace cairn::ibverbs
