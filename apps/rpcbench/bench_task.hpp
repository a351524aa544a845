// One worker of cairn-rpcbench: an eRPC endpoint that serves, calls in a closed loop, or both.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/rpcbench/options.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/worker.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::rpcbench {

// Latencies in 10 ns steps up to 100 us; longer ones count in the last.
class LatencyTable {
public:
    void add(Duration latency) noexcept {
        const auto step = static_cast<std::uint64_t>(latency.ns) / 10U;
        ++steps_[step < kSteps ? step : kSteps - 1];
        ++count_;
    }
    [[nodiscard]] double percentile_us(double quantile) const noexcept;
    void clear() noexcept {
        steps_.fill(0);
        count_ = 0;
    }

private:
    static constexpr std::size_t kSteps = 10'000;
    std::array<std::uint32_t, kSteps> steps_{};
    std::uint64_t count_ = 0;
};

class BenchTask final : public pmd::WorkerTask {
public:
    BenchTask(const Options& options, pmd::EthdevPort& port);

    // Makes the endpoint; connects when there is a peer.
    Status prepare(std::uint64_t seed, Instant now);
    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    void print_result() const;
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    static void serve(void* context, const erpc::Request& request);
    static void completed(void* context, const erpc::CallResult& result);
    static void session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason reason);
    void call(std::uint32_t index) noexcept;
    void progress(Instant now) noexcept;

    const Options& options_;
    pmd::EthdevPort& port_;
    std::vector<std::uint8_t> memory_;
    rpc::MsgPool pool_;
    roce::UdService service_;
    roce::Sender sender_;
    std::unique_ptr<erpc::Endpoint> endpoint_;
    std::vector<SessionId> sessions_;
    std::vector<std::uint8_t> request_;
    std::uint32_t connected_ = 0;
    bool measuring_ = false;
    bool failed_ = false;
    Instant now_{};
    Instant started_{};
    Instant ended_{};
    Instant next_progress_{};
    std::uint64_t completed_ = 0;
    std::uint64_t completed_before_ = 0;
    LatencyTable latency_;
};

}  // namespace cairn::rpcbench
