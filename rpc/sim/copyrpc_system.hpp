// copyrpc in a simulated world: its endpoints, and calls by try_post().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/sim/copyrpc_one_sided.hpp"
#include "rpc/sim/copyrpc_plan.hpp"
#include "rpc/sim/job_threads.hpp"
#include "rpc/sim/linked_calling.hpp"

namespace cairn::sim {

// Counters in addition to those of all RPC systems over connections.
struct CopyrpcCounters {
    std::uint64_t tried_in_vain = 0;
    std::uint64_t told_of_room = 0;
    // Sums of the counters of endpoints that have ended.
    std::uint64_t late_answers = 0;
    std::uint64_t displaced = 0;
    std::uint64_t batches = 0;
    std::uint64_t fetched = 0;  // long requests
    std::uint64_t written = 0;  // long answers
    std::uint64_t words = 0;    // with Flow::Read

    friend bool operator==(const CopyrpcCounters&, const CopyrpcCounters&) = default;
};

class CopyrpcSystem final : public LinkedSystem {
public:
    CopyrpcSystem(World& world, const CopyrpcPlan& plan)
        : world_(world), random_(world.random()), plan_(plan), parts_(world.nodes()), one_sided_(world) {}

    [[nodiscard]] const CopyrpcCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] const OneSidedCounters& one_sided_counters() const noexcept { return one_sided_.counters(); }

    std::size_t memory_most() const override;
    std::string text() const override;
    void start(LinkedNode& node, connections::Home& home) override;
    void count(LinkedNode& node) override;
    void stop(LinkedNode& node) override;
    std::unique_ptr<LinkedStranger> make_stranger(LinkedNode& node, connections::Home& home) override;
    void plan_sizes(LinkedNode& node, LinkedCall& call) override;
    void plan_brief(LinkedNode& node, LinkedCall& call) override;
    Handling draw_handling() override;
    bool may_be_too_long(const LinkedNode& client, const LinkedCall& call) const override;
    bool must_be_too_long(const LinkedNode& client, const LinkedCall& call) const override;
    bool may_give_up() const override { return plan_.longest_bytes != 0 || plan_.flow == copyrpc::Flow::Read; }
    // A request may wait in the ring for a round trip, if the send queue is full.
    std::int64_t ways_of_request() const override { return 3; }
    bool keeps_order(const LinkedCall& call) const override;
    bool calls_back() const override { return true; }
    bool act(LinkedNode& node, const LinkedSession& session) override;
    void on_request(LinkedNode& node, const LinkedRequest& request, const LinkedCall& call) override {
        one_sided_.on_request(node, request.handle.session, call);
    }
    void on_turn(LinkedNode& node) override;
    void after_turn(LinkedNode& node) override;
    Instant next_turn(const LinkedNode& node) const override { return part_of(node).threads->next_end(); }
    void check_quiet(LinkedNode& node) override;
    void on_heal() override {}

private:
    // A node's part of a process.
    struct Part {
        CopyrpcSystem* system = nullptr;
        LinkedNode* node = nullptr;
        copyrpc::EndpointConfig config{};
        std::unique_ptr<JobThreads> threads{};
        copyrpc::Endpoint* endpoint = nullptr;
        std::map<std::uint64_t, copyrpc::Wanted> wanted{};  // by session: the last call that found no room
    };
    [[nodiscard]] Part& part_of(const LinkedNode& node) { return parts_[node.host->index()]; }
    [[nodiscard]] const Part& part_of(const LinkedNode& node) const { return parts_[node.host->index()]; }
    [[nodiscard]] bool is_too_long(const LinkedCall& call, copyrpc::RingShape own, copyrpc::RingShape peer) const;
    copyrpc::Attempt try_one(LinkedNode& node, SessionId id, LinkedCall& call);
    void on_room(LinkedNode& node, SessionId id);

    World& world_;
    Random& random_;
    const CopyrpcPlan plan_;
    std::vector<Part> parts_;  // by node
    CopyrpcCounters counters_;
    CopyrpcOneSided one_sided_;
};

}  // namespace cairn::sim
