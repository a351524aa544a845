// Two queue pairs against each other over a link that loses, doubles, delays and reorders, in virtual time, from one
// seed. A model says what memory, completions, atomics, windows and flushes must be.
// The service is RC, UC or XRC: an initiator and a target with two receive queues, each with a protection domain.
// Selective resending and delayed acknowledgements are on or off. Receivers are late, completion queues overrun, and an
// end restarts while packets of its last life are under way.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "lib/sim/datagram_log.hpp"
#include "lib/sim/random.hpp"
#include "lib/sim/rc/rc_node.hpp"

namespace cairn::sim {

struct RcFaults {
    std::uint32_t loss_per_million = 0;
    std::uint32_t double_per_million = 0;
    Duration jitter{};
    std::uint32_t late_copy_per_million = 0;      // the packet comes again milliseconds later
    std::uint32_t stall_per_million = 0;          // sending stalls: a full transmit ring
    std::uint32_t pause_per_million = 0;          // at each turn: an end's CPU is taken away for milliseconds
    std::uint32_t lazy_receiver_per_million = 0;  // receive requests are posted late: RNR
    std::uint32_t restart_per_million = 0;        // at each turn
    std::uint32_t lazy_poller_per_million = 0;    // completions are left in a small queue
    std::uint32_t mark_per_million = 0;           // congestion experienced
};

// Counters over all lives.
struct RcWorldCounters {
    std::uint64_t lost = 0;
    std::uint64_t pauses = 0;
    std::uint64_t restarts = 0;
    std::uint64_t overruns = 0;
    std::uint64_t stale = 0;  // packets that were under way at a restart
    std::uint64_t unreliable_messages_lost = 0;
    std::array<std::uint64_t, 2> xrc_messages{};                                          // by receive queue
    std::array<std::uint64_t, static_cast<std::size_t>(roce::WorkOpcode::Count)> done{};  // signalled, by operation
    telemetry::CounterSnapshot<rc::RcCounter> transport{};
};

class RcWorld {
public:
    explicit RcWorld(std::uint64_t seed);

    // Posts all work under faults, then heals the link and requires the end within a bound. Returns the first broken
    // promise; nullopt if all held.
    [[nodiscard]] std::optional<std::string> run();
    // Returns a number that two runs of one seed share.
    [[nodiscard]] std::uint64_t history() const { return history_; }
    [[nodiscard]] const RcWorldCounters& counters() const { return counters_; }
    [[nodiscard]] DatagramLog& log() { return log_; }
    [[nodiscard]] const DatagramLog& log() const { return log_; }
    [[nodiscard]] Instant now() const { return now_; }
    [[nodiscard]] std::uint64_t requests() const { return sides_[0].next_wr_id + sides_[1].next_wr_id; }
    [[nodiscard]] std::string text() const;

private:
    void choose_faults();
    void choose_attributes();
    void start_life();
    void maybe_restart();
    [[nodiscard]] bool is_away(RcNode& side);
    void heed_events(RcNode& side);

    void post_some(RcNode& from, RcNode& to);
    void post_one(RcNode& from, RcNode& to);
    [[nodiscard]] roce::WorkOpcode choose_opcode();
    [[nodiscard]] bool is_signalled(const RcNode& from);
    void post_local(RcNode& from, roce::WorkOpcode opcode);
    [[nodiscard]] roce::SendRequest begin_request(RcNode& from, RcNode& to, roce::WorkOpcode opcode);
    void choose_remote(RcNode& to, roce::SendRequest& request, std::uint32_t bytes, ExpectedSend& sent);
    void apply_to_model(RcNode& to, const roce::SendRequest& request, std::span<const std::uint8_t> payload);
    void expect_receive(RcNode& to, const roce::SendRequest& request, std::span<const std::uint8_t> payload);
    void post_receives(RcNode& side);

    void transmit(RcNode& from, RcNode& to);
    void deliver(RcNode& side);
    void check_receives(RcNode& side);
    [[nodiscard]] bool find_expected(RcNode& side, const roce::Completion& got);
    void check_receive(RcNode& side, const roce::Completion& got);
    void check_sends(RcNode& side);
    void on_sent(RcNode& side, const ExpectedSend& sent);
    void check_memory(RcNode& side);
    void step();
    [[nodiscard]] bool finished() const;
    [[nodiscard]] Instant next_time() const;
    [[nodiscard]] bool is_reliable() const { return service_ != wire::Service::Uc; }
    [[nodiscard]] bool is_xrc() const { return service_ == wire::Service::Xrc; }
    void note(std::uint64_t value) { history_ = (history_ ^ value) * 0x100000001b3U; }
    // Requires `holds`: ends the history if it is false. Returns `holds`.
    bool expect(bool holds, const char* what);

    Random random_;
    wire::Service service_ = wire::Service::Rc;
    RcFaults faults_;
    RcFaults none_;
    roce::QpAttributes attributes_;
    std::array<Psn, 2> first_{};
    bool healed_ = false;
    bool restart_wanted_ = false;
    Instant now_{};
    DatagramLog log_{2};
    std::uint64_t history_ = 0xcbf29ce484222325U;
    RcWorldCounters counters_;
    std::optional<std::string> broken_;
    std::deque<RcNode> sides_;
};

}  // namespace cairn::sim
