// The calls of one worker of cairn-rpcbench. It is a closed loop with a number of calls outstanding, or an open loop
// that begins calls at a given rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/rpcbench/measurement.hpp"
#include "apps/rpcbench/options.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/msg_buffer.hpp"

namespace cairn::rpcbench {

// The request types. A checked request's answer has the pattern of the request's digest.
constexpr std::uint8_t kEcho = 1;
constexpr std::uint8_t kChecked = 2;

// The part of a load that all RPC systems share. No call goes through it: see LoadOf.
class Load {
public:
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    virtual ~Load() = default;

    // Takes the memory of the requests. Error: the pool is too small.
    Status prepare();

    // Begins to call over these sessions, which outlive the load. Calls that complete before `measured_from` do not
    // count.
    void start(std::span<const SessionId> sessions, Instant measured_from, Instant now);
    // Begins no further calls. Calls under way still end, and their latencies count.
    void stop(Instant now);
    // Counts the calls under way as never ended. Their sessions are about to be closed.
    void give_up(std::uint64_t pending);
    // Begins the calls that are due. Called each turn, before completions come. Returns true if there were any.
    bool on_turn(Instant now) {
        figures_.keep_time(now);
        return now >= next_due_ && begin_due();
    }
    [[nodiscard]] Instant next_due() const noexcept { return next_due_; }  // of on_turn(); never() when a call must end
    [[nodiscard]] const Measurement& figures() const noexcept { return figures_; }

protected:
    enum class Phase : std::uint8_t { Idle, Calling, Stopped, GivenUp };

    // A call that is checked, or was due at a certain time. The tag of its call is the slot's number.
    struct Slot {
        rpc::MsgBuffer request{};
        Instant due{};
        std::uint32_t answer = 0;  // the pattern expected in the answer
    };

    // Makes a load. References outlive the object. `share` is this worker's part of the rate.
    Load(const Options& options, rpc::MsgPool& pool, double share);
    // Begins the first calls, or the intervals between them.
    virtual void begin() = 0;
    // Begins the calls that are due. Returns true if there were any.
    [[nodiscard]] virtual bool begin_due() noexcept = 0;
    // Ends the load: no call begins any more.
    virtual void end() = 0;
    // Returns the calls that were due by now and have not begun, with --rate.
    [[nodiscard]] virtual std::uint64_t not_begun(Instant now) const noexcept = 0;

    [[nodiscard]] bool is_open_loop() const noexcept { return rate_per_ns_ > 0; }
    [[nodiscard]] double rate_per_ns() const noexcept { return rate_per_ns_; }
    [[nodiscard]] Instant started() const noexcept { return started_; }
    [[nodiscard]] Instant due_of(std::uint64_t call) const noexcept {
        return started_ + Duration{static_cast<std::int64_t>(static_cast<double>(call) / rate_per_ns_)};
    }
    [[nodiscard]] std::uint32_t next_session() noexcept;
    // Returns the next call of a slot, less its completion.
    [[nodiscard]] rpc::Call describe(std::uint32_t slot) noexcept;
    // Takes a verdict. Returns false if the load cannot go on.
    [[nodiscard]] bool accepted(rpc::PostVerdict verdict) noexcept;
    // Takes a result. Returns true if the loop goes on with another call.
    [[nodiscard]] bool take(const rpc::CallResult& result, Duration latency) noexcept;
    // Returns false if the answer is not that of the slot's request.
    [[nodiscard]] bool is_sound(const rpc::CallResult& result) noexcept;

    const Options& options_;
    Measurement figures_;
    std::span<const SessionId> sessions_;
    Phase phase_ = Phase::Idle;
    rpc::MsgBuffer request_{};  // of all calls without a check
    std::vector<Slot> slots_;
    Instant next_due_ = Instant::never();
    std::uint64_t begun_ = 0;  // calls of slots
    bool by_slots_;            // false: the plain closed loop

private:
    rpc::MsgPool& pool_;
    double rate_per_ns_;
    std::uint32_t turn_ = 0;  // the session of the next call
    Instant started_{};
};

// The calls of one RPC system. `Endpoint` is its endpoint.
template <class Endpoint>
class LoadOf final : public Load {
public:
    // Makes the load. All references outlive the object.
    LoadOf(const Options& options, Endpoint& endpoint, rpc::MsgPool& pool, double share)
        : Load(options, pool, share), endpoint_(endpoint) {}

private:
    static void on_completed(void* context, const rpc::CallResult& result);
    static void on_slot_completed(void* context, const rpc::CallResult& result);
    void begin() override;
    [[nodiscard]] bool begin_due() noexcept override;
    void end() override { next_due_ = Instant::never(); }
    [[nodiscard]] std::uint64_t not_begun(Instant now) const noexcept override;
    void post(rpc::Call& call, std::uint32_t session) noexcept;
    void call(std::uint32_t session) noexcept;
    void call_in(std::uint32_t slot, Instant due) noexcept;

    Endpoint& endpoint_;
    std::vector<std::uint32_t> free_;  // slots, with --rate
};

}  // namespace cairn::rpcbench
