#include "rpc/common/background.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

#include "lib/base/thread_limits.hpp"

namespace cairn::rpc {

namespace {

constexpr std::uint32_t kThreadsMax = 256;
constexpr std::uint32_t kJobsMax = 65536;

}  // namespace

// One thread's part: two rings of jobs, each written by one side. The sides also sleep on the rings' counters. At most
// a ring's size of jobs is out, so the rings cannot overrun. Departs: does not use readerwriterqueue. Its order is made
// by fences, which g++ refuses to compile for TSan (-Wtsan), and it would only repeat the counters.
struct BackgroundPool::Lane {
    explicit Lane(std::uint32_t jobs_max)
        : waiting(std::bit_ceil(jobs_max)), done(waiting.size()), mask(waiting.size() - 1) {}

    std::vector<BackgroundJob*> waiting;  // indexed by counter; submitted jobs
    std::vector<BackgroundJob*> done;     // finished jobs
    std::size_t mask;
    alignas(64) std::atomic<std::uint32_t> submitted{0};  // written by the worker, as the next two; wraps
    std::uint32_t jobs = 0;                               // handed over and not taken back
    std::uint32_t taken = 0;                              // finished jobs that were taken back
    alignas(64) std::atomic<std::uint32_t> finished{0};   // written by the thread, as the next one; wraps
    std::uint32_t begun = 0;                              // submitted jobs that were begun
    std::thread thread;
};

Result<std::unique_ptr<BackgroundPool>> BackgroundPool::create(const BackgroundConfig& config) {
    if (config.threads == 0 || config.threads > kThreadsMax) {
        return Error{fmt::format("{} background threads are out of range", config.threads),
                     fmt::format("choose 1 to {}", kThreadsMax)};
    }
    if (config.jobs_max == 0 || config.jobs_max > kJobsMax || config.jobs_per_thread == 0 ||
        config.jobs_per_thread > kJobsMax) {
        return Error{
            fmt::format("{} background jobs, {} per thread, are out of range", config.jobs_max, config.jobs_per_thread),
            fmt::format("choose 1 to {}", kJobsMax)};
    }
    if (std::any_of(config.cpus.begin(), config.cpus.end(), [](std::uint32_t cpu) { return cpu >= CPU_SETSIZE; })) {
        return Error{"a CPU of the background threads is out of range", fmt::format("choose 0 to {}", CPU_SETSIZE - 1)};
    }
    std::unique_ptr<BackgroundPool> pool(new BackgroundPool(config));
    if (const Status started = config.stepped ? Nothing{} : pool->start_threads(); !started.ok()) {
        return started.error();
    }
    return pool;
}

BackgroundPool::BackgroundPool(const BackgroundConfig& config) : config_(config), jobs_(config.jobs_max) {
    for (std::uint32_t i = 0; i < config.threads; ++i) {
        lanes_.push_back(std::make_unique<Lane>(config.jobs_per_thread));
    }
}

// A thread inherits the CPUs of its creator.
Status BackgroundPool::start_threads() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const std::uint32_t cpu : config_.cpus) {
        CPU_SET(cpu, &cpus);
    }
    try {
        for (std::uint32_t i = 0; i < config_.threads; ++i) {
            lanes_[i]->thread = std::thread([this, lane = lanes_[i].get()] { serve(*lane); });
            const pthread_t thread = lanes_[i]->thread.native_handle();
            if (!config_.cpus.empty() && pthread_setaffinity_np(thread, sizeof(cpus), &cpus) != 0) {
                return Error{"background threads may run on none of the CPUs that were given", "name others"};
            }
        }
    } catch (const std::system_error& error) {
        return Error{fmt::format("no background thread: {}", error.what()),
                     fmt::format("ask for fewer, or {}", remedy_for_threads())};
    }
    return Nothing{};
}

BackgroundPool::~BackgroundPool() {
    CAIRN_ASSERT(!attached_);
    stop_.store(true, std::memory_order_relaxed);
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        lane->submitted.fetch_add(1, std::memory_order_release);  // not a job: lets the thread see `stop_`
        lane->submitted.notify_one();
    }
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        if (lane->thread.joinable()) {
            lane->thread.join();
        }
    }
}

// Runs a thread. It sleeps on the number of submitted jobs while it has begun all of them, so no wake-up is lost.
void BackgroundPool::serve(Lane& lane) noexcept {
    for (;;) {
        lane.submitted.wait(lane.begun, std::memory_order_acquire);  // pairs with the release in ~BackgroundPool()
        if (stop_.load(std::memory_order_relaxed)) {
            return;
        }
        run_next(lane);
    }
}

bool BackgroundPool::has_next(const Lane& lane) noexcept {
    return lane.submitted.load(std::memory_order_acquire) != lane.begun;  // pairs with the release in dispatch()
}

// A job may have waited here for a long one.
bool BackgroundPool::run_next(Lane& lane) noexcept {
    if (!has_next(lane)) {
        return false;
    }
    BackgroundJob* const job = lane.waiting[lane.begun++ & lane.mask];
    job->is_late = now_ns_.load(std::memory_order_relaxed) >= job->deadline.ns;
    if (!job->is_late && !closing_.load(std::memory_order_acquire)) {
        BackgroundRequest request(*job);
        job->function(job->context, request);
    }
    lane.done[lane.finished.load(std::memory_order_relaxed) & lane.mask] = job;
    lane.finished.fetch_add(1, std::memory_order_release);  // pairs with the acquire in poll_finished()
    finished_.fetch_add(1, std::memory_order_release);      // pairs with the acquire in any_finished()
    finished_.notify_one();                                 // no system call unless drain() waits
    if (config_.wake != nullptr) {
        config_.wake(config_.wake_context);
    }
    return true;
}

bool BackgroundPool::has_job(std::uint32_t thread) const noexcept {
    CAIRN_ASSERT(config_.stepped && thread < config_.threads);
    return has_next(*lanes_[thread]);
}

bool BackgroundPool::run_one(std::uint32_t thread) noexcept {
    return has_job(thread) && run_next(*lanes_[thread]);
}

void BackgroundPool::attach() noexcept {
    CAIRN_ASSERT(!attached_);
    attached_ = true;
}

BackgroundJob* BackgroundPool::take() noexcept {
    return jobs_.take();
}

void BackgroundPool::give_back(BackgroundJob& job) noexcept {
    jobs_.give_back(&job);
}

void BackgroundPool::submit(BackgroundJob& job) noexcept {
    job.next = nullptr;
    (first_waiting_ == nullptr ? first_waiting_ : last_waiting_->next) = &job;
    last_waiting_ = &job;
    ++out_;
    dispatch(Instant{});
}

// Gives each job to the thread that has the fewest. Other jobs wait for a thread. A job is not late at its submission.
void BackgroundPool::dispatch(Instant now) noexcept {
    const auto fewer = [](const auto& one, const auto& other) { return one->jobs < other->jobs; };
    while (first_waiting_ != nullptr) {
        if (now >= first_waiting_->deadline) {
            BackgroundJob* const late = std::exchange(first_waiting_, first_waiting_->next);
            late->next = std::exchange(overdue_, late);
            continue;
        }
        Lane& lane = **std::min_element(lanes_.begin(), lanes_.end(), fewer);
        if (lane.jobs >= config_.jobs_per_thread) {
            return;
        }
        lane.waiting[lane.submitted.load(std::memory_order_relaxed) & lane.mask] = first_waiting_;
        first_waiting_ = first_waiting_->next;
        ++lane.jobs;
        lane.submitted.fetch_add(1, std::memory_order_release);
        lane.submitted.notify_one();  // no system call unless the thread sleeps
    }
}

BackgroundJob* BackgroundPool::poll_finished(Instant now) noexcept {
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        if (lane->finished.load(std::memory_order_acquire) != lane->taken) {  // pairs with the release in run_next()
            BackgroundJob* const job = lane->done[lane->taken++ & lane->mask];
            --lane->jobs;
            ++taken_;
            --out_;
            dispatch(now);
            return job;
        }
    }
    return nullptr;
}

BackgroundJob* BackgroundPool::take_overdue() noexcept {
    BackgroundJob* const late = overdue_;
    if (late != nullptr) {
        overdue_ = late->next;
        --out_;
    }
    return late;
}

BackgroundJob* BackgroundPool::drain() noexcept {
    closing_.store(true, std::memory_order_release);
    if (BackgroundJob* const job = first_waiting_; job != nullptr) {
        first_waiting_ = job->next;
        --out_;
        return job;
    }
    if (BackgroundJob* const late = take_overdue(); late != nullptr) {
        return late;
    }
    while (out_ != 0) {
        const std::uint32_t seen = finished_.load(std::memory_order_acquire);
        if (BackgroundJob* const job = poll_finished(Instant{}); job != nullptr) {
            return job;
        }
        if (!config_.stepped) {
            finished_.wait(seen, std::memory_order_acquire);
            continue;
        }
        for (const std::unique_ptr<Lane>& lane : lanes_) {
            run_next(*lane);
        }
    }
    return nullptr;
}

void BackgroundPool::detach() noexcept {
    CAIRN_ASSERT(attached_ && out_ == 0);
    attached_ = false;
    closing_.store(false, std::memory_order_release);
}

}  // namespace cairn::rpc
