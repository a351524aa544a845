// The threads of an endpoint's background handlers, which a simulated world plays.
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

    // Each thread begins the job that it has, if it is idle. time() says how long one takes.
    template <class Time>
    void begin(Instant now, Time&& time) {
        for (std::uint32_t thread = 0; thread < jobs_.size(); ++thread) {
            if (jobs_[thread].ends == Instant::never() && pool_->has_job(thread)) {
                jobs_[thread] = {now, now + time()};
            }
        }
    }
    // Runs jobs at the end of their time: all that their worker did meanwhile must have left them alone. Returns false
    // if a thread does not have its job any more.
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
    // When the job began whose handler runs.
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
