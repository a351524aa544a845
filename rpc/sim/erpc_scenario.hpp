// eRPC clients and servers in a simulated world: their workload, and checks of eRPC's promises. Hostile peers forge
// packets, send invalid ones, and use up sessions.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/common/coroutine.hpp"
#include "rpc/sim/babbler.hpp"
#include "rpc/sim/erpc_node.hpp"
#include "rpc/sim/erpc_plan.hpp"
#include "rpc/sim/intruder.hpp"
#include "rpc/sim/stranger.hpp"

namespace cairn::sim {

// Counters of a world. The network has counters of its own.
struct ErpcCounters {
    std::uint64_t calls = 0;
    std::uint64_t calls_ok = 0;
    std::uint64_t deadlines_passed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t peers_lost = 0;
    std::uint64_t too_long = 0;  // responses that did not fit the caller's buffer
    std::uint64_t answers_lost = 0;
    std::uint64_t nested = 0;                        // requests that a handler answered after a call of its own
    std::uint64_t awaited = 0;                       // calls that ended a co_await
    std::uint64_t jobs = 0;                          // requests executed in the background
    telemetry::CounterSnapshot<erpc::Drop> drops{};  // drops of endpoints that have ended
    std::uint64_t forged = 0;
    std::uint64_t babbled = 0;
    std::uint64_t odd_calls = 0;
    std::uint64_t intruded = 0;  // sessions that the intruder opened
    std::uint64_t replayed = 0;
    std::uint64_t spoofed = 0;

    ErpcCounters& operator+=(const ErpcCounters& other) noexcept;
    friend bool operator==(const ErpcCounters&, const ErpcCounters&) = default;
};

class ErpcScenario final : public Scenario {
public:
    // Places in the network that are no hosts: the forger, the sender of invalid packets, the intruder, the bystander.
    static constexpr std::size_t kGuests = 4;

    ErpcScenario(World& world, const WorldPlan& plan);

    [[nodiscard]] ErpcCounters counters() const;
    [[nodiscard]] std::string text() const override;

    // erpc_process.cpp
    [[nodiscard]] bool lives_on(const Node& node) const override { return nodes_[node.host()]->host == &node; }
    void start(Node& host) override;
    void stop(Node& host) override;
    // erpc_scenario.cpp
    void on_step() override;
    [[nodiscard]] Instant next_step() const override;
    void before_turn(Node& host) override;
    void act(Node& host) override;
    void after_turn(Node& host) override;
    [[nodiscard]] Instant next_act(const Node& host) const override;
    void on_delivery(std::size_t to, const Frame& frame) override;
    void on_frame(Node& host, const Frame& frame, bool icrc_ok) override;
    void on_guests_frame(std::size_t place, const Frame& frame) override;
    void on_partition(Node& host, std::size_t neighbour) override;
    void on_heal() override;
    // erpc_checks.cpp
    void check_progress() override;
    void wind_up() override;
    void check_end() override;

private:
    static constexpr std::uint8_t kAtOnce = 1;
    static constexpr std::uint8_t kLater = 2;
    static constexpr std::uint8_t kNested = 3;
    static constexpr std::uint8_t kRelayed = 4;     // by a coroutine, after calls of its own
    static constexpr std::uint8_t kBackground = 5;  // by a thread
    static constexpr std::uint8_t kBrief = 6;       // by a thread, with short answers

    [[nodiscard]] bool is_own(const Frame& frame) const;
    void run_ahead(ErpcNode& node, std::size_t peer);

    // erpc_process.cpp
    void start_threads(ErpcNode& node);
    void set_handlers(ErpcNode& node);

    // erpc_workload.cpp: what clients and handlers do
    void connect(ErpcNode& node, std::size_t server, std::vector<ClientSession>& sessions);
    void call_babbler(ErpcNode& node);
    void answer_babble(ErpcNode& node, const erpc::Request& request);
    void act(ErpcNode& node);
    [[nodiscard]] CallRecord& plan_call(ErpcNode& node);
    [[nodiscard]] static erpc::Call call_of(CallRecord& record);
    void post(ErpcNode& node, SessionId session, CallRecord& record);
    void abandon(ErpcNode& node, CallRecord& record);
    void complete(ErpcNode& node, const erpc::CallResult& result);
    void end_record(ErpcNode& node, CallRecord& call, const erpc::CallResult& result);
    void execute(ErpcNode& node, const erpc::Request& request);
    [[nodiscard]] const ClientSession* session_for_handlers(ErpcNode& node);
    bool call_another(ErpcNode& node, const erpc::Request& request, const CallTag& tag);
    bool answer(ErpcNode& node, erpc::Endpoint& endpoint, LateAnswer& answer);
    void answer_late(ErpcNode& node);
    void session_changed(ErpcNode& node, SessionId session, erpc::SessionEvent event);

    // erpc_slow_work.cpp: threads and coroutines
    [[nodiscard]] Duration job_time();
    void begin_jobs(ErpcNode& node);
    void end_jobs(ErpcNode& node);
    void work(ErpcNode& node, erpc::BackgroundRequest& request);
    erpc::Task<> converse(ErpcNode& node, SessionId session, std::uint64_t calls);
    static erpc::Task<> relay(void* context, erpc::Request request);

    // erpc_checks.cpp: what is promised
    void check(bool condition, const char* promise, const ErpcNode* node = nullptr);
    // Called at the beginning of a handler. Checks that the request is whole, new and as it was sent. Returns false if
    // a promise was broken.
    [[nodiscard]] bool begin(ErpcNode& node, std::span<const std::uint8_t> payload, CallTag& tag);
    void check_order(ErpcNode& node, SessionId session, const CallTag& tag);
    void check_result(ErpcNode& node, const CallRecord& call, const erpc::CallResult& result);
    void check_bounds(const ErpcNode& node);
    void run_until_answered();

    World& world_;
    Random& random_;
    WorldPlan plan_;
    Stranger stranger_;
    Babbler babbler_;
    Intruder intruder_;
    std::size_t clients_;
    Duration peer_timeout_;
    Instant next_babble_;
    Instant next_intrusion_;
    erpc::CongestionConfig congestion_{};
    std::vector<std::unique_ptr<ErpcNode>> nodes_;
    std::deque<CallRecord> calls_;        // by serial; a record never moves
    Instant settled_ = Instant::never();  // from then on no session may be lost
    bool calling_ = true;
    bool in_order_ = false;  // requests of one session arrive in the order of their posting
    ErpcCounters counters_;
};

// A world with eRPC clients and servers only.
class ErpcWorld final : public World {
public:
    ErpcWorld(std::uint64_t seed, const WorldPlan& plan);
    [[nodiscard]] ErpcCounters counters() const { return users_.counters(); }

private:
    ErpcScenario users_;
};

}  // namespace cairn::sim
