// What copyrpc promises, held against what happens to each call of a simulated world.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "rpc/sim/copyrpc_node.hpp"
#include "rpc/sim/copyrpc_plan.hpp"

namespace cairn::sim {

// What endpoints of processes that ended had counted, and strangers.
struct CopyrpcEnds {
    std::uint64_t late_answers = 0;
    std::uint64_t displaced = 0;
    std::uint64_t batches = 0;
    std::uint64_t breaches = 0;
    std::uint64_t strange = 0;  // requests of strangers
    std::uint64_t strangers_connected = 0;
    std::uint64_t strangers_batches = 0;

    friend bool operator==(const CopyrpcEnds&, const CopyrpcEnds&) = default;
};

// What happened in a world. The network has counters of its own.
struct CopyrpcCounters {
    std::uint64_t calls = 0;
    std::uint64_t calls_ok = 0;
    std::uint64_t too_long = 0;  // calls that no ring takes, and answers that their callers have no room for
    std::uint64_t deadlines_passed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t disconnected = 0;
    std::uint64_t calls_lost = 0;  // with their peer
    std::uint64_t answers_refused = 0;
    std::uint64_t nested = 0;
    std::uint64_t retained = 0;
    std::uint64_t echoed = 0;
    std::uint64_t stale = 0;  // answers to requests of sessions that had ended
    std::uint64_t tried_in_vain = 0;
    std::uint64_t told_of_room = 0;
    std::uint64_t sessions = 0;  // that came about
    std::uint64_t sessions_refused = 0;
    std::uint64_t peers_lost = 0;
    std::uint64_t full_tables = 0;
    CopyrpcEnds ends{};

    friend bool operator==(const CopyrpcCounters&, const CopyrpcCounters&) = default;
};

class CopyrpcOracle {
public:
    CopyrpcOracle(World& world, const CopyrpcPlan& plan) : world_(world), plan_(plan) {}

    // Returns a new call, whose tag has its serial. Its completion is post()'s.
    [[nodiscard]] CopyrpcCall& add(const CopyrpcNode& client);
    [[nodiscard]] CopyrpcCall& call(std::uint32_t serial) { return calls_[serial]; }
    [[nodiscard]] std::size_t calls() const noexcept { return calls_.size(); }
    [[nodiscard]] CopyrpcCounters& counters() noexcept { return counters_; }
    [[nodiscard]] const CopyrpcCounters& counters() const noexcept { return counters_; }

    // True if some ring, or every ring of the world, is too short for the call.
    [[nodiscard]] bool may_be_too_long(const CopyrpcNode& client, const CopyrpcCall& call) const;
    [[nodiscard]] bool must_be_too_long(const CopyrpcNode& client, const CopyrpcCall& call) const;

    // A handler begins. Checks that the request is whole, new and as it was sent. Returns nullptr if the request is a
    // stranger's, or a promise was broken.
    [[nodiscard]] CopyrpcCall* begin(CopyrpcNode& server, std::span<const std::uint8_t> payload);
    // A call completes.
    void end(CopyrpcNode& client, CopyrpcCall& call, const rpc::CallResult& result);
    // Requests that are kept with their payload have it unchanged.
    void check_kept(CopyrpcNode& server);
    // What time alone decides has been decided, and nobody who is honest broke a rule.
    void check_bounds(const CopyrpcNode& node);
    void check(bool holds, std::string_view promise, const CopyrpcNode* node = nullptr) {
        world_.check(holds, promise, node != nullptr ? node->host : nullptr);
    }

private:
    void check_answer(CopyrpcNode& client, const CopyrpcCall& call, std::span<const std::uint8_t> answer);
    void check_result(CopyrpcNode& client, const CopyrpcCall& call, const rpc::CallResult& result);

    World& world_;
    const CopyrpcPlan& plan_;
    std::deque<CopyrpcCall> calls_;  // by serial
    CopyrpcCounters counters_;
};

}  // namespace cairn::sim
