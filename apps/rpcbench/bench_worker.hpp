// One worker of cairn-rpcbench: an eRPC endpoint that serves, calls, or both.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apps/common/worker_program.hpp"
#include "apps/rpcbench/load.hpp"
#include "apps/rpcbench/options.hpp"
#include "lib/telemetry/counters.hpp"
#include "pmd_glue/heap_block.hpp"
#include "rpc/erpc/directory.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::rpcbench {

// X(enumerator, counter name, what non-zero means): what the progress line reads from another thread.
#define CAIRN_BENCH_COUNTERS(X)                                  \
    X(Completed, "bench_completed", "calls answered")            \
    X(Handled, "bench_handled", "requests answered as a server") \
    X(Failed, "bench_failed", "calls that ended without answer") \
    X(Resent, "bench_resent", "requests sent again for want of an answer in time")

CAIRN_DECLARE_COUNTERS(BenchCounter, CAIRN_BENCH_COUNTERS);

// What the first worker finds out for all workers.
struct Lookup {
    std::atomic<bool> known{false};
    std::atomic<bool> failed{false};
    erpc::ServiceOffer offer{};  // valid once `known` is true
};

class BenchWorker final : public app::WorkerProgram {
public:
    BenchWorker(const Options& options, std::unique_ptr<port::Port> port, std::uint16_t worker, pmd::HeapBlock memory,
                Lookup& lookup);

    // Makes the endpoint. The first worker announces it, and asks for a peer's service. Sessions begin when the worker
    // runs. `seed` is hard to guess.
    Status prepare(const std::optional<net::IpAddress>& peer, const SipKey& seed, Instant now);
    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;

    [[nodiscard]] const telemetry::CounterSet<BenchCounter>& progress() const noexcept { return progress_; }
    // Valid after the worker has stopped:
    [[nodiscard]] const Load& load() const noexcept { return *load_; }
    [[nodiscard]] const erpc::Endpoint& endpoint() const noexcept { return *endpoint_; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return std::min(load_->next_due(), next_look_); }

    enum class Phase : std::uint8_t { Connecting, Calling, Draining, Closing };

    static void serve(void* context, const erpc::Request& request);
    static void serve_checked(void* context, const erpc::Request& request);
    static void session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason reason);
    Status make_directory(const std::optional<net::IpAddress>& peer, Instant now);
    void keep_directory(Instant now);
    Status connect(Instant now);
    void keep_time(Instant now) noexcept;
    void show_progress() noexcept;
    void keep_phase(Instant now) noexcept;
    void close(Instant now) noexcept;
    // Prints the reason on stderr, once.
    void fail(const std::string& why);

    const Options& options_;
    std::uint16_t number_;  // number of the worker
    pmd::HeapBlock memory_;
    rpc::MsgPool pool_;
    std::unique_ptr<erpc::Endpoint> endpoint_;
    std::unique_ptr<connections::Home> home_;     // of the first worker only
    std::unique_ptr<erpc::Directory> directory_;  // likewise
    Lookup& lookup_;
    net::IpAddress peer_{};
    std::vector<SessionId> sessions_;
    std::unique_ptr<Load> load_;
    bool calls_;  // true with a peer
    bool failed_ = false;
    Phase phase_ = Phase::Connecting;
    std::uint32_t connected_ = 0;
    Instant next_look_{};
    Instant phase_ends_{};  // end of calling; end of the wait for calls under way; start of closing
    telemetry::CounterSet<BenchCounter> progress_;
};

}  // namespace cairn::rpcbench
