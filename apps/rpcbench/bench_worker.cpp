#include "apps/rpcbench/bench_worker.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "lib/port/qpn_owners.hpp"
#include "pmd_glue/lcores.hpp"

namespace cairn::rpcbench {

namespace {

constexpr Duration kLook = milliseconds(10);     // interval between looks at time and progress
constexpr Duration kLinger = milliseconds(200);  // after a failure, for the ends of its sessions; a caller that also
                                                 // serves waits as long for its peer's,
constexpr Duration kLingerMost = seconds(5);     // and this long at most
constexpr Duration kPatience = seconds(2);       // with calls that do not end

}  // namespace

BenchWorker::BenchWorker(const Options& options, std::unique_ptr<port::Port> port, std::uint16_t worker,
                         pmd::HeapBlock memory, Crew& crew)
    : WorkerProgram(std::move(port)),
      options_(options),
      number_(worker),
      memory_(std::move(memory)),
      pool_(memory_.bytes()),
      crew_(crew),
      calls_(!options.peer.empty()) {}

Status BenchWorker::prepare(const std::optional<net::IpAddress>& peer, const SipKey& seed, Instant now) {
    roce::EngineConfig engine = engine_config(options_);
    engine.owner_bits = port::QpnOwners(pmd::worker_count()).bits();
    engine.owner = number_;
    engine.seed = derive_key(seed, Purpose::EngineNumbers);
    const Status opened = open_worker(engine, now);
    if (!opened.ok()) {
        return opened;
    }
    if (options_.stages) {
        stages_.emplace(worker());  // before the system's tenants
    }
    auto made = make_system(
        {options_, number_, pmd::worker_count(), crew_, worker(), pool_, peer, seed, stages_ ? &*stages_ : nullptr},
        now);
    if (!made.ok()) {
        return made.error();
    }
    system_ = std::move(made).value();
    join();
    return Nothing{};
}

// Takes a turn. Calls begin before it, so that no latency includes the time before the call could be posted.
bool BenchWorker::run_turn(Instant now) noexcept {
    if (stages_) [[unlikely]] {
        stages_->begin_turn();
    }
    const bool began = system_->load().on_turn(now);
    const bool worked = worker().turn(now) || began;
    if (stages_) [[unlikely]] {
        stages_->end_turn(worked);
    }
    return worked;
}

bool BenchWorker::on_turn(Instant now) noexcept {
    if (stages_) [[unlikely]] {
        stages_->end_handling();
    }
    if (now >= next_look_) {
        keep_time(now);
    }
    return false;
}

void BenchWorker::keep_time(Instant now) noexcept {
    next_look_ = now + kLook;
    system_->look(now);
    show_progress();
    for (const std::string& failure : {system_->failure(), system_->load().figures().failure()}) {
        if (!failure.empty()) {
            fail(failure, now);
        }
    }
    if (crew_.failed.load(std::memory_order_acquire)) {
        failed_ = true;
    }
    if (calls_ && !failed_) {
        keep_phase(now);
    }
}

void BenchWorker::show_progress() noexcept {
    const auto show = [this](BenchCounter which, std::uint64_t value) {
        progress_.count(which, value - progress_.of(which));
    };
    const SystemFigures figures = system_->figures();
    memory_bytes_ = std::max(memory_bytes_, pool_.live_bytes() + figures.bytes_beside_pool);
    show(BenchCounter::Completed, system_->load().figures().completed());
    show(BenchCounter::Handled, figures.handled);
    show(BenchCounter::Failed, system_->load().figures().failed());
    show(BenchCounter::Resent, figures.resent);
    if (stages_) {
        stages_->look(figures.handled + system_->load().figures().completed());
    }
}

void BenchWorker::keep_phase(Instant now) noexcept {
    switch (phase_) {
        case Phase::Connecting:
            if (system_->is_connected()) {
                phase_ = Phase::Calling;
                const Instant measured_from = now + milliseconds(options_.time.warm_up_ms);
                system_->load().start(system_->sessions(), measured_from, now);
                phase_ends_ = measured_from + Duration{static_cast<std::int64_t>(options_.time.duration_s * 1e9)};
            }
            break;
        case Phase::Calling:
            if (now >= phase_ends_) {
                phase_ = Phase::Draining;
                system_->load().stop(now);
                phase_ends_ = now + kPatience;
            }
            break;
        case Phase::Draining:
            if (system_->calls_pending() == 0 || now >= phase_ends_) {
                close(now);
            }
            break;
        case Phase::Closing:
            break;
    }
}

void BenchWorker::close(Instant now) noexcept {
    const std::uint32_t unfinished = system_->calls_pending();
    system_->load().give_up(unfinished);
    if (unfinished != 0) {
        fail(fmt::format("{} calls did not end within 2 s after the last one began", unfinished), now);
    }
    leave(now);
}

// Ends the sessions, and lets the peer learn of it.
void BenchWorker::leave(Instant now) noexcept {
    phase_ = Phase::Closing;
    phase_ends_ = now;
    system_->close(now);
}

bool BenchWorker::finished(Instant now) const noexcept {
    if (failed_) {
        return system_->sessions_open() == 0 || now - phase_ends_ > kLinger;
    }
    const bool over = phase_ == Phase::Closing;
    if (!over || !options_.server) {
        return over && system_->sessions_open() == 0;
    }
    const Duration since = now - phase_ends_;
    return since > kLingerMost || (since > kLinger && system_->sessions_open() == 0);
}

void BenchWorker::fail(const std::string& why, Instant now) {
    if (!failed_) {
        failed_ = true;
        fmt::print(stderr, "cairn-rpcbench: {}\n", why);
        leave(now);
    }
}

}  // namespace cairn::rpcbench
