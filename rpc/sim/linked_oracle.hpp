// What RPC systems over connections promise, held against what happens to each call of a simulated world.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "rpc/common/background.hpp"
#include "rpc/sim/linked_node.hpp"
#include "rpc/sim/linked_system.hpp"
#include "rpc/sim/messages.hpp"

namespace cairn::sim {

// What endpoints of processes that ended had counted, and strangers.
struct LinkedEnds {
    std::uint64_t breaches = 0;
    std::uint64_t strange = 0;  // requests of strangers
    std::uint64_t strangers_connected = 0;
    std::uint64_t strangers_writes = 0;

    friend bool operator==(const LinkedEnds&, const LinkedEnds&) = default;
};

// What happened in a world. The network and the RPC system have counters of their own.
struct LinkedCounters {
    std::uint64_t calls = 0;
    std::uint64_t calls_ok = 0;
    std::uint64_t too_long = 0;  // calls that no session takes, and answers that their callers have no room for
    std::uint64_t deadlines_passed = 0;
    std::uint64_t executed_in_time = 0;  // requests with deadlines, where none comes late
    std::uint64_t cancelled = 0;
    std::uint64_t disconnected = 0;
    std::uint64_t calls_lost = 0;  // with their peer
    std::uint64_t answers_refused = 0;
    std::uint64_t answers_given_up = 0;  // for want of memory
    std::uint64_t in_background = 0;
    std::uint64_t nested = 0;
    std::uint64_t retained = 0;
    std::uint64_t echoed = 0;
    std::uint64_t stale = 0;     // answers to requests of sessions that had ended
    std::uint64_t sessions = 0;  // that came about
    std::uint64_t sessions_refused = 0;
    std::uint64_t peers_lost = 0;
    std::uint64_t full_tables = 0;
    LinkedEnds ends{};

    friend bool operator==(const LinkedCounters&, const LinkedCounters&) = default;
};

class LinkedOracle {
public:
    LinkedOracle(World& world, const LinkedPlan& plan, const LinkedSystem& system)
        : world_(world), plan_(plan), system_(system) {}

    // Returns a new call, whose tag has its serial. Its completion is post()'s.
    [[nodiscard]] LinkedCall& add(const LinkedNode& client);
    [[nodiscard]] LinkedCall& call(std::uint32_t serial) { return calls_[serial]; }
    [[nodiscard]] std::size_t calls() const noexcept { return calls_.size(); }
    [[nodiscard]] Instant now() const noexcept { return world_.now(); }
    [[nodiscard]] LinkedCounters& counters() noexcept { return counters_; }
    [[nodiscard]] const LinkedCounters& counters() const noexcept { return counters_; }

    // A handler has begun. Checks that the request is whole, new, as it was sent, and not over. Returns nullptr if the
    // request is a stranger's, or a promise was broken.
    [[nodiscard]] LinkedCall* begin(LinkedNode& server, std::span<const std::uint8_t> payload, Instant began);
    // A thread runs a request, which it began then: checks it and fills in the answer.
    void run_job(LinkedNode& server, rpc::BackgroundRequest& request, Instant began);
    // Checks the room that a handler got for the answer, and writes the answer there, or a part of it.
    void write_answer(LinkedNode& server, std::span<std::uint8_t> room, LinkedCall& call);
    // True if `answer` is what the handler gave.
    [[nodiscard]] static bool is_answer(const LinkedCall& call, std::span<const std::uint8_t> answer);
    // Checks that a frame from a host to another one holds nothing of a third one's messages.
    void check_frame(std::size_t to, const Frame& frame);
    // Checks that the stranger of a node has got nothing of others but the requests that they sent to strangers.
    void check_stranger(const LinkedNode& node);
    // A call completes.
    void end(LinkedNode& client, LinkedCall& call, const rpc::CallResult& result);
    // Requests that are kept with their payload have it unchanged.
    void check_kept(LinkedNode& server);
    // What time alone decides has been decided, and no honest peer broke a rule.
    void check_bounds(const LinkedNode& node);
    void check(bool holds, std::string_view promise, const LinkedNode* node = nullptr) {
        world_.check(holds, promise, node != nullptr ? node->host : nullptr);
    }

private:
    // True if the bytes are of a request to a stranger.
    [[nodiscard]] bool is_sent_to_strangers(const Owner& owner) const;
    void check_in_time(const LinkedNode& server, const LinkedCall& call, Instant began);
    void check_answer(LinkedNode& client, const LinkedCall& call, std::span<const std::uint8_t> answer);
    [[nodiscard]] bool may_expire_early(const LinkedCall& call) const;
    void check_result(LinkedNode& client, const LinkedCall& call, const rpc::CallResult& result);

    World& world_;
    const LinkedPlan& plan_;
    const LinkedSystem& system_;
    std::deque<LinkedCall> calls_;  // by serial
    LinkedCounters counters_;
};

}  // namespace cairn::sim
