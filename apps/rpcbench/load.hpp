// The calls of one worker of cairn-rpcbench: a closed loop that keeps so many outstanding, or an open one that begins
// them at a given rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/rpcbench/options.hpp"
#include "lib/telemetry/histogram.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::rpcbench {

// Types of requests. The answer to a checked one is filled with the pattern of its request's digest.
constexpr std::uint8_t kEcho = 1;
constexpr std::uint8_t kChecked = 2;

class Load {
public:
    // All outlive it. `share`: this one's part of the rate.
    Load(const Options& options, erpc::Endpoint& endpoint, rpc::MsgPool& pool, double share);
    // Takes the memory of the requests. Error: the pool is too small.
    Status prepare();

    // Begins to call over these sessions, which outlive it; what completes before `measured_from` does not count.
    void start(std::span<const SessionId> sessions, Instant measured_from, Instant now);
    // No further calls; those under way still end, and their latencies count.
    void stop(Instant now);
    // What is under way now counts as never ended; its sessions are about to be closed.
    void give_up();
    // To be called each turn, before completions come; begins calls that are due. True: there were some.
    bool on_turn(Instant now) {
        now_ = now;
        return rate_per_ns_ > 0 && begin_due();
    }
    [[nodiscard]] Instant next_due() const noexcept { return next_due_; }  // of on_turn(); never() when a call must end

    // Why it can not go on; empty: it can.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }
    [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
    // Once it has stopped, of the interval that was measured:
    [[nodiscard]] double rate_mops() const noexcept;
    [[nodiscard]] double seconds() const noexcept;
    [[nodiscard]] const telemetry::Histogram& latency_ns() const noexcept { return latency_ns_; }
    [[nodiscard]] std::uint64_t checked() const noexcept { return checked_; }
    [[nodiscard]] std::uint64_t unfinished() const noexcept { return unfinished_; }
    [[nodiscard]] std::uint64_t not_begun() const noexcept { return not_begun_; }  // of --rate: due, and no room

private:
    enum class Phase : std::uint8_t { Idle, Calling, Stopped, GivenUp };

    // A call that is checked or was due at a certain time.
    struct Slot {
        rpc::MsgBuffer request{};
        Instant due{};
        std::uint32_t answer = 0;  // the pattern that the answer is to have
    };

    static void on_completed(void* context, const erpc::CallResult& result);
    static void on_slot_completed(void* context, const erpc::CallResult& result);
    [[nodiscard]] bool take(const erpc::CallResult& result, Duration latency) noexcept;
    void post(erpc::Call& call, std::uint32_t session) noexcept;
    void call(std::uint32_t session) noexcept;
    void call_in(std::uint32_t slot, Instant due) noexcept;
    [[nodiscard]] bool begin_due() noexcept;
    [[nodiscard]] std::uint32_t next_session() noexcept;
    void fail(std::string why);

    const Options& options_;
    erpc::Endpoint& endpoint_;
    rpc::MsgPool& pool_;
    double rate_per_ns_;
    bool by_slots_;  // not the plain closed loop
    std::span<const SessionId> sessions_;
    Phase phase_ = Phase::Idle;
    rpc::MsgBuffer request_{};  // of all calls that are not checked
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;  // with --rate
    std::uint32_t turn_ = 0;           // the next session to call over
    Instant now_{};
    Instant started_{};
    Instant next_due_ = Instant::never();
    Instant measured_from_ = Instant::never();
    Instant measured_to_ = Instant::never();
    std::uint64_t begun_ = 0;  // with --rate or --check
    std::uint64_t completed_ = 0;
    std::uint64_t measured_ = 0;  // of them, in time
    std::uint64_t failed_ = 0;
    std::uint64_t checked_ = 0;
    std::uint64_t unfinished_ = 0;
    std::uint64_t not_begun_ = 0;
    telemetry::Histogram latency_ns_;
    std::string failure_;
};

}  // namespace cairn::rpcbench
