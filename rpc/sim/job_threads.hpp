// Simulates the threads of an endpoint's background handlers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/time.hpp"
#include "rpc/common/background.hpp"

namespace cairn::sim {

class JobThreads {
public:
    JobThreads(std::uint32_t threads, std::uint32_t jobs_max) : jobs_(threads) {
        rpc::BackgroundConfig config;
        config.threads = threads;
        config.stepped = true;
        config.jobs_max = jobs_max;
        pool_ = rpc::BackgroundPool::create(config).value();
    }
    [[nodiscard]] rpc::BackgroundPool& pool() noexcept { return *pool_; }

    // Lets each idle thread begin its next job. time() returns how long a job takes.
    template <class Time>
    void begin(Instant now, Time&& time) {
        for (std::uint32_t thread = 0; thread < jobs_.size(); ++thread) {
            if (jobs_[thread].ends == Instant::never() && pool_->has_job(thread)) {
                jobs_[thread] = {now, now + time()};
            }
        }
    }
    // Runs jobs at the end of their time, so that the worker's actions up to then cannot have changed them. Returns
    // false if a thread has lost its job.
    [[nodiscard]] bool end(Instant now) {
        bool kept = true;
        for (std::uint32_t thread = 0; thread < jobs_.size(); ++thread) {
            if (jobs_[thread].ends <= now) {
                jobs_[thread].ends = Instant::never();
                runs_since_ = jobs_[thread].begins;
                kept = pool_->run_one(thread) && kept;
            }
        }
        return kept;
    }
    // Returns when the job of the running handler began.
    [[nodiscard]] Instant runs_since() const noexcept { return runs_since_; }
    [[nodiscard]] Instant next_end() const noexcept {
        const auto first = std::min_element(jobs_.begin(), jobs_.end(),
                                            [](const Job& one, const Job& other) { return one.ends < other.ends; });
        return first->ends;
    }

private:
    struct Job {
        Instant begins{};
        Instant ends = Instant::never();  // never(): the thread is idle
    };
    std::unique_ptr<rpc::BackgroundPool> pool_;
    std::vector<Job> jobs_;  // by thread
    Instant runs_since_{};
};

}  // namespace cairn::sim
