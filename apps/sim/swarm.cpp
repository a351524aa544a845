#include "apps/sim/swarm.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "apps/sim/crash.hpp"
#include "apps/sim/history.hpp"

namespace cairn::simulate {

namespace {

std::atomic<bool> stop_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

double thread_cpu_s() noexcept {
    std::timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

}  // namespace

void request_stop() noexcept {
    stop_wanted.store(true, std::memory_order_relaxed);
}

bool stop_requested() noexcept {
    return stop_wanted.load(std::memory_order_relaxed);
}

Tally Swarm::run() {
    started_ = Clock::now();
    working_ = options_.jobs;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.jobs; ++i) {
        threads.emplace_back([this] { work(); });
    }
    watch();
    for (std::thread& thread : threads) {
        thread.join();
    }
    return tally_;
}

void Swarm::watch() {
    std::unique_lock lock(guard_);
    while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return working_ == 0; })) {
        fmt::print(stderr, "{}\n", tally_.text(options_));
    }
}

void Swarm::work() {
    while (const std::optional<std::uint64_t> seed = next_seed()) {
        live_through(*seed);
    }
    const std::scoped_lock lock(guard_);
    --working_;
    ended_.notify_one();
}

std::optional<std::uint64_t> Swarm::next_seed() {
    if (stop_requested()) {
        return std::nullopt;
    }
    const std::uint64_t index = begun_.fetch_add(1, std::memory_order_relaxed);
    const bool over = options_.minutes > 0
                          ? std::chrono::duration<double>(Clock::now() - started_).count() >= options_.minutes * 60
                          : index >= options_.seeds;
    return over ? std::nullopt : std::optional(options_.first + index);
}

void Swarm::live_through(std::uint64_t seed) {
    const double before_s = thread_cpu_s();
    UnderWay under_way(seed, options_);
    const std::unique_ptr<History> world = make_history(options_, seed);
    under_way.set_world(world.get());
    if (options_.trace) {
        world->trace();
    }
    const std::optional<std::string> broken = world->run();
    under_way.set_world(nullptr);
    if (options_.trace) {
        fmt::print("{}\n", world->text());
    }
    if (!options_.pcap.empty()) {
        fmt::print(stderr, "{}\n", write_frames(*world, options_.pcap));
    }
    const double spent_s = thread_cpu_s() - before_s;
    const std::scoped_lock lock(guard_);
    tally_.add(*world);
    tally_.cpu_s += spent_s;
    if (broken) {
        tally_.failures.push_back(seed);
        fmt::print(stderr, "seed {}: {}\n  {}\n  replay: {}\n  {}\n", seed, *broken, world->text(),
                   fmt::format(kReplay, seed, options_.replay_arguments()), write_frames(*world, frames_file(seed)));
        if (tally_.failures.size() >= kFailuresEnough) {
            request_stop();
        }
    }
}

}  // namespace cairn::simulate
