// ScaleRPC in a simulated world: its endpoints, and the simulated threads of their background handlers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rpc/common/background.hpp"
#include "rpc/scalerpc/batch_calls.hpp"
#include "rpc/sim/job_threads.hpp"
#include "rpc/sim/linked_calling.hpp"
#include "rpc/sim/scalerpc_plan.hpp"

namespace cairn::sim {

// Sums of the counters of endpoints that have ended.
struct ScalerpcCounters {
    std::uint64_t switches = 0;
    std::uint64_t notices_alone = 0;
    std::uint64_t keys_ended = 0;
    std::uint64_t fetches = 0;
    std::uint64_t requests_fetched = 0;
    std::uint64_t requests_expired = 0;
    std::uint64_t late_answers = 0;
    std::uint64_t displaced = 0;
    std::uint64_t splits = 0;
    std::uint64_t merges = 0;
    std::uint64_t regroupings = 0;
    std::uint64_t collected = 0;  // calls of batches
    std::uint64_t awaited = 0;    // calls by sync_call()

    friend bool operator==(const ScalerpcCounters&, const ScalerpcCounters&) = default;
};

class ScalerpcSystem final : public LinkedSystem {
public:
    ScalerpcSystem(World& world, const ScalerpcPlan& plan)
        : world_(world), random_(world.random()), plan_(plan), parts_(world.nodes()) {}

    [[nodiscard]] const ScalerpcCounters& counters() const noexcept { return counters_; }

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
    bool must_be_too_long(const LinkedNode& client, const LinkedCall& call) const override {
        return may_be_too_long(client, call);
    }
    bool may_give_up() const override { return true; }
    // An entry that names the request may be replaced by the next entry before the server has seen it.
    std::int64_t ways_of_request() const override { return 2; }
    bool keeps_order(const LinkedCall&) const override { return true; }
    bool stages_requests() const override { return true; }
    bool calls_back() const override { return false; }
    bool act(LinkedNode& node, const LinkedSession& session) override;
    void call_and_wait(LinkedNode& node, const LinkedSession& session) override;
    std::size_t uncollected(const LinkedNode& node) const override;
    void on_turn(LinkedNode& node) override;
    void after_turn(LinkedNode& node) override;
    Instant next_turn(const LinkedNode& node) const override;
    void check_quiet(LinkedNode&) override {}

private:
    static constexpr std::uint32_t kThreads = 2;
    // A node's part of a process.
    struct Part {
        scalerpc::EndpointConfig config{};
        std::unique_ptr<JobThreads> threads;
        LinkedNode* node = nullptr;
        scalerpc::Endpoint* endpoint = nullptr;
        std::unique_ptr<scalerpc::BatchCalls> batches;
        std::size_t batched = 0;  // calls of batches that were not collected, and an awaited one
        bool awaits = false;
    };
    [[nodiscard]] Part& part_of(const LinkedNode& node) { return parts_[node.host->index()]; }
    void make_config(LinkedNode& node);
    void make_pool(LinkedNode& node);
    void collect(LinkedNode& node);
    static void work(void* context, rpc::BackgroundRequest& request);

    World& world_;
    Random& random_;
    const ScalerpcPlan plan_;
    std::vector<Part> parts_;  // by node
    ScalerpcCounters counters_;
};

}  // namespace cairn::sim
