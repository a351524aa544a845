// Checks the promises of RPC systems over connections for each call of a simulated world.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "rpc/common/background.hpp"
#include "rpc/sim/linked_node.hpp"
#include "rpc/sim/linked_system.hpp"
#include "rpc/sim/messages.hpp"

namespace cairn::sim {

// Sums of the counters of endpoints that have ended, and of hostile peers.
struct LinkedEnds {
    std::uint64_t breaches = 0;
    std::uint64_t strange = 0;  // requests of hostile peers
    std::uint64_t strangers_connected = 0;
    std::uint64_t strangers_writes = 0;

    friend bool operator==(const LinkedEnds&, const LinkedEnds&) = default;
};

// Counters of a world. The network and the RPC system have counters of their own.
struct LinkedCounters {
    std::uint64_t calls = 0;
    std::uint64_t calls_ok = 0;
    std::uint64_t too_long = 0;  // calls that no session takes, and answers without room at their callers
    std::uint64_t deadlines_passed = 0;
    std::uint64_t executed_in_time = 0;  // requests with deadlines, in worlds in which no request comes late
    std::uint64_t cancelled = 0;
    std::uint64_t disconnected = 0;
    std::uint64_t calls_lost = 0;  // calls lost with their peer
    std::uint64_t answers_refused = 0;
    std::uint64_t answers_given_up = 0;  // for want of memory
    std::uint64_t in_background = 0;
    std::uint64_t nested = 0;
    std::uint64_t retained = 0;
    std::uint64_t echoed = 0;
    std::uint64_t stale = 0;     // answers to requests of sessions that had ended
    std::uint64_t sessions = 0;  // sessions that were opened
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

    // Returns a new call. Its tag has its serial. post() sets its completion.
    [[nodiscard]] LinkedCall& add(const LinkedNode& client);
    [[nodiscard]] LinkedCall& call(std::uint32_t serial) { return calls_[serial]; }
    [[nodiscard]] std::size_t calls() const noexcept { return calls_.size(); }
    [[nodiscard]] Instant now() const noexcept { return world_.now(); }
    [[nodiscard]] LinkedCounters& counters() noexcept { return counters_; }
    [[nodiscard]] const LinkedCounters& counters() const noexcept { return counters_; }

    // Checks a request at the beginning of its handler: it must be whole, new, as it was sent, and in time. Returns
    // nullptr if the request is from a hostile peer, or a promise was broken.
    [[nodiscard]] LinkedCall* begin(LinkedNode& server, std::span<const std::uint8_t> payload, Instant began);
    // Checks a request that a thread runs, and fills in the answer. The thread began it at `began`.
    void run_job(LinkedNode& server, rpc::BackgroundRequest& request, Instant began);
    // Checks the room that a handler got for the answer, and writes the answer or a part of it.
    void write_answer(LinkedNode& server, std::span<std::uint8_t> room, LinkedCall& call);
    // True if `answer` is the handler's answer.
    [[nodiscard]] static bool is_answer(const LinkedCall& call, std::span<const std::uint8_t> answer);
    // Checks that a frame from one host to another has no bytes of a third host's messages.
    void check_frame(std::size_t to, const Frame& frame);
    // Checks that a node's hostile peer has got no bytes of others but requests that were sent to hostile peers.
    void check_stranger(const LinkedNode& node);
    // Checks the completion of a call.
    void end(LinkedNode& client, LinkedCall& call, const rpc::CallResult& result);
    // Checks that retained payloads are unchanged.
    void check_kept(LinkedNode& server);
    // Checks that everything is decided that depends on time only, and that no honest peer broke a rule.
    void check_bounds(const LinkedNode& node);
    void check(bool holds, std::string_view promise, const LinkedNode* node = nullptr) {
        world_.check(holds, promise, node != nullptr ? node->host : nullptr);
    }

private:
    // True if the bytes are of a request to a hostile peer.
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
