// One worker of cairn-rpcbench: an RPC system that serves, calls, or both, and the phases of a run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/worker_program.hpp"
#include "apps/rpcbench/stage_watch.hpp"
#include "apps/rpcbench/system.hpp"
#include "lib/telemetry/counters.hpp"
#include "pmd_glue/eal.hpp"
#include "pmd_glue/heap_block.hpp"

namespace cairn::rpcbench {

// X(enumerator, counter name, what non-zero means): counters that the progress line reads from another thread.
#define CAIRN_BENCH_COUNTERS(X)                                  \
    X(Completed, "bench_completed", "calls answered")            \
    X(Handled, "bench_handled", "requests answered as a server") \
    X(Failed, "bench_failed", "calls that ended without answer") \
    X(Resent, "bench_resent", "packets sent again for want of an answer in time")

CAIRN_DECLARE_COUNTERS(BenchCounter, CAIRN_BENCH_COUNTERS);

class BenchWorker final : public app::WorkerProgram {
public:
    BenchWorker(const Options& options, std::unique_ptr<port::Port> port, std::uint16_t worker, pmd::HeapBlock memory,
                Crew& crew);

    // Makes the system. Sessions begin when the worker runs. `seed` is hard to guess.
    Status prepare(const std::optional<net::IpAddress>& peer, const SipKey& seed, Instant now);
    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;

    [[nodiscard]] const telemetry::CounterSet<BenchCounter>& progress() const noexcept { return progress_; }
    // These are valid after the worker has stopped:
    [[nodiscard]] const System& system() const noexcept { return *system_; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    // Returns the most bytes of messages, rings, blocks and datagrams that were in use at a time.
    [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }
    [[nodiscard]] mem::PageKind message_pages() const noexcept { return memory_.page_kind(); }
    [[nodiscard]] StageTimes stages() const noexcept { return stages_ ? stages_->times() : StageTimes{}; }

private:
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override {
        return std::min(system_->load().next_due(), next_look_);
    }

    enum class Phase : std::uint8_t { Connecting, Calling, Draining, Closing };

    void keep_time(Instant now) noexcept;
    void show_progress() noexcept;
    void keep_phase(Instant now) noexcept;
    void close(Instant now) noexcept;
    void leave(Instant now) noexcept;
    // Prints the reason on stderr, once, and leaves.
    void fail(const std::string& why, Instant now);

    const Options& options_;
    std::uint16_t number_;  // number of the worker
    pmd::HeapBlock memory_;
    rpc::MsgPool pool_;
    Crew& crew_;
    std::optional<StageWatch<pmd::Clock>> stages_{};  // with --stages
    std::unique_ptr<System> system_;
    std::uint64_t memory_bytes_ = 0;
    bool calls_;  // true with a peer
    bool failed_ = false;
    Phase phase_ = Phase::Connecting;
    Instant next_look_{};
    Instant phase_ends_{};  // end of calling; end of the wait for calls under way; start of closing
    telemetry::CounterSet<BenchCounter> progress_;
};

}  // namespace cairn::rpcbench
