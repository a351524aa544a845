// Makes a worker, keeps its tenants, and lets it sleep.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::worker {

namespace {

telemetry::CounterList list_counters(const port::Port& port, const roce::Engine& engine, const roce::UdMux& datagrams,
                                     const roce::Sender& sender) {
    telemetry::CounterList list;
    port.list_counters(list);
    list.add(engine.counters()).add(engine.rc_counters()).add(engine.drops()).add(engine.wire_drops());
    list.add(datagrams.drops()).add(sender.drops());
    return list;
}

}  // namespace

Tenancy::Tenancy(Tenancy&& other) noexcept
    : worker_(std::exchange(other.worker_, nullptr)), tenant_(std::exchange(other.tenant_, nullptr)) {}

Tenancy& Tenancy::operator=(Tenancy&& other) noexcept {
    leave();
    worker_ = std::exchange(other.worker_, nullptr);
    tenant_ = std::exchange(other.tenant_, nullptr);
    return *this;
}

void Tenancy::leave() noexcept {
    if (worker_ != nullptr) {
        std::exchange(worker_, nullptr)->remove(*tenant_);
    }
}

void Tenancy::wake_at(Instant due) noexcept {
    if (worker_ != nullptr) {
        worker_->wake_at(*tenant_, due);
    }
}

Result<std::unique_ptr<Worker>> Worker::create(port::Port& port, const roce::EngineConfig& config, Instant now) {
    auto wakeup = Wakeup::create();
    if (!wakeup.ok()) {
        return wakeup.error();
    }
    return std::unique_ptr<Worker>(new Worker(port, config, std::move(wakeup).value(), now));
}

Worker::Worker(port::Port& port, const roce::EngineConfig& config, std::unique_ptr<Wakeup> wakeup, Instant now)
    : port_(port),
      config_(config),
      can_wait_(!port.limits().poll_only),
      datagrams_(port),
      sender_(port),
      engine_(datagrams_, sender_, config, now),
      registration_(counters_.add(list_counters(port, engine_, datagrams_, sender_))),
      sleep_(*wakeup) {
    address_.office_ = std::make_shared<Address::Office>();
    office_ = address_.office_.get();
    office_->worker = fmt::format("worker {} of {}", config.owner, port.local_address().text());
    office_->wakeup = std::move(wakeup);
}

Worker::~Worker() {
    office_->ended.store(true, std::memory_order_release);
    office_->box.close([](Letter& letter) noexcept { letter.discard(); });
    forget_removed();
    CAIRN_ASSERT(tenants_.empty() && timed_.empty());
}

Tenancy Worker::add(Tenant& tenant, Calls calls) {
    if (calls == Calls::WhenDue) {
        timed_.push_back({&tenant});
    } else {
        tenants_.push_back(&tenant);
    }
    if (calls == Calls::OnTurnAndSent) {
        senders_.push_back(&tenant);
    }
    return Tenancy(*this, tenant);
}

void Worker::remove(Tenant& tenant) noexcept {
    const auto timed =
        std::find_if(timed_.begin(), timed_.end(), [&tenant](const Timed& each) { return each.tenant == &tenant; });
    if (timed != timed_.end()) {
        *timed = {};
        any_left_ = true;
        return;
    }
    const auto found = std::find(tenants_.begin(), tenants_.end(), &tenant);
    CAIRN_ASSERT(found != tenants_.end());
    *found = nullptr;
    std::replace(senders_.begin(), senders_.end(), &tenant, static_cast<Tenant*>(nullptr));
    any_left_ = true;
}

void Worker::forget_removed() noexcept {
    std::erase(tenants_, nullptr);
    std::erase(senders_, nullptr);
    std::erase_if(timed_, [](const Timed& each) { return each.tenant == nullptr; });
    any_left_ = false;
}

// Work that other threads and processes made before the sleep began is seen here. A thread or process that makes work
// later sees that the sleep began, and wakes the worker.
Instant Worker::prepare_sleep(Instant now) noexcept {
    sleep_.begin();
    if (can_wait()) {
        port_.wait(Duration{}, -1);  // sends packets kept for the next turn
    }
    return std::max(next_deadline(), now);
}

void Worker::wait(Instant now, Instant until) noexcept {
    sleep_.begin();
    const Instant due = std::min(next_deadline(), until);
    const Duration most = due > now ? due - now : Duration{};
    const int others = sleep_.fd(office_->expects_mail.load(std::memory_order_relaxed));
    if (can_wait()) {
        port_.wait(most, others);
    } else if (most > Duration{}) {
        const Duration nap = std::min(most, kNap);
        const timespec timeout{0, nap.ns};
        pollfd waiting{others, POLLIN, 0};
        ppoll(&waiting, others >= 0 ? 1 : 0, &timeout, nullptr);
    }
}

Result<int> Worker::descriptor() {
    const int of_port = port_.descriptor();
    if (of_port < 0) {
        return Error{fmt::format("{} has no descriptor to sleep on: {}", name(), port_.describe()),
                     "use a socket (--port uring:ADDRESS), or call turn() in a loop"};
    }
    return sleep_.descriptor(of_port, name());
}

}  // namespace cairn::worker
