// The calls of one worker of cairn-rpcbench: a closed loop with a number of calls outstanding, or an open loop that
// begins calls at a given rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/rpcbench/options.hpp"
#include "lib/telemetry/histogram.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::rpcbench {

// The request types. A checked request's answer has the pattern of the request's digest.
constexpr std::uint8_t kEcho = 1;
constexpr std::uint8_t kChecked = 2;

class Load {
public:
    // All references outlive the object. `share` is this worker's part of the rate.
    Load(const Options& options, erpc::Endpoint& endpoint, rpc::MsgPool& pool, double share);
    // Takes the memory of the requests. Error: the pool is too small.
    Status prepare();

    // Begins to call over these sessions, which outlive the load. What completes before `measured_from` does not count.
    void start(std::span<const SessionId> sessions, Instant measured_from, Instant now);
    // Begins no further calls. Calls under way still end, and their latencies count.
    void stop(Instant now);
    // Counts the calls under way as never ended. Their sessions are about to be closed.
    void give_up();
    // Called each turn, before completions come. Begins the calls that are due. Returns true if there were any.
    bool on_turn(Instant now) {
        now_ = now;
        return rate_per_ns_ > 0 && begin_due();
    }
    [[nodiscard]] Instant next_due() const noexcept { return next_due_; }  // of on_turn(); never() when a call must end

    // Why the load cannot go on. Empty if it can.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }
    [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
    // Valid after the stop, for the measured interval:
    [[nodiscard]] double rate_mops() const noexcept;
    [[nodiscard]] double seconds() const noexcept;
    [[nodiscard]] const telemetry::Histogram& latency_ns() const noexcept { return latency_ns_; }
    [[nodiscard]] std::uint64_t checked() const noexcept { return checked_; }
    [[nodiscard]] std::uint64_t unfinished() const noexcept { return unfinished_; }
    [[nodiscard]] std::uint64_t not_begun() const noexcept { return not_begun_; }  // with --rate: due, but without room

private:
    enum class Phase : std::uint8_t { Idle, Calling, Stopped, GivenUp };

    // A call that is checked, or was due at a certain time.
    struct Slot {
        rpc::MsgBuffer request{};
        Instant due{};
        std::uint32_t answer = 0;  // the pattern expected in the answer
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
    bool by_slots_;  // false: the plain closed loop
    std::span<const SessionId> sessions_;
    Phase phase_ = Phase::Idle;
    rpc::MsgBuffer request_{};  // of all calls without a check
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;  // used with --rate
    std::uint32_t turn_ = 0;           // the session of the next call
    Instant now_{};
    Instant started_{};
    Instant next_due_ = Instant::never();
    Instant measured_from_ = Instant::never();
    Instant measured_to_ = Instant::never();
    std::uint64_t begun_ = 0;  // counted with --rate or --check
    std::uint64_t completed_ = 0;
    std::uint64_t measured_ = 0;  // of these, in the measured time
    std::uint64_t failed_ = 0;
    std::uint64_t checked_ = 0;
    std::uint64_t unfinished_ = 0;
    std::uint64_t not_begun_ = 0;
    telemetry::Histogram latency_ns_;
    std::string failure_;
};

}  // namespace cairn::rpcbench
