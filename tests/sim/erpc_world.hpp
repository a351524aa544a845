// A world of eRPC clients and servers on a simulated network: drives them, does them harm, and holds what they do
// against what eRPC promises.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/erpc/coroutine.hpp"
#include "tests/sim/babbler.hpp"
#include "tests/sim/erpc_node.hpp"
#include "tests/sim/intruder.hpp"
#include "tests/sim/stranger.hpp"
#include "tests/sim/world_plan.hpp"

namespace cairn::sim {

// What happened in a world besides its network's counters.
struct WorldCounters {
    std::uint64_t calls = 0;
    std::uint64_t calls_ok = 0;
    std::uint64_t deadlines_passed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t peers_lost = 0;
    std::uint64_t too_long = 0;  // responses that did not fit the caller's buffer
    std::uint64_t answers_lost = 0;
    std::uint64_t nested = 0;   // requests that a handler answered after a call of its own
    std::uint64_t awaited = 0;  // calls that ended a co_await
    std::uint64_t jobs = 0;     // requests executed in the background
    std::uint64_t restarts = 0;
    std::uint64_t clock_went_back = 0;
    std::uint64_t clock_leapt = 0;
    telemetry::CounterSnapshot<erpc::Drop> drops{};  // of all endpoints
    std::uint64_t forged = 0;
    std::uint64_t babbled = 0;
    std::uint64_t odd_calls = 0;
    std::uint64_t intruded = 0;  // sessions that the intruder opened
    std::uint64_t replayed = 0;
    std::uint64_t spoofed = 0;
    std::uint64_t refused = 0;  // packets that a full ring did not take
    std::uint64_t starved = 0;  // buffers that an empty pool did not give

    WorldCounters& operator+=(const WorldCounters& other) noexcept;
    friend bool operator==(const WorldCounters&, const WorldCounters&) = default;
};

class ErpcWorld {
public:
    ErpcWorld(std::uint64_t seed, const WorldPlan& plan);
    ErpcWorld(const ErpcWorld&) = delete;  // its nodes and its network point to it
    ErpcWorld& operator=(const ErpcWorld&) = delete;

    // Before run(): who is told the fate of every frame.
    void set_witness(Network::Witness witness) { network_.set_witness(std::move(witness)); }

    // Runs with faults, heals, and requires progress. The first promise that was broken, or nothing.
    [[nodiscard]] std::optional<std::string> run();

    [[nodiscard]] const Network& network() const noexcept { return network_; }
    [[nodiscard]] Instant now() const noexcept { return now_; }
    [[nodiscard]] WorldCounters counters() const;
    [[nodiscard]] std::string text() const;

private:
    static constexpr Qpn kQpn{0x100};
    static constexpr Qkey kQkey{0x205};
    static constexpr std::uint8_t kAtOnce = 1;
    static constexpr std::uint8_t kLater = 2;
    static constexpr std::uint8_t kNested = 3;
    static constexpr std::uint8_t kRelayed = 4;     // by a coroutine, after calls of its own
    static constexpr std::uint8_t kBackground = 5;  // by a thread
    static constexpr std::uint8_t kBrief = 6;       // by a thread, with short answers
    static constexpr std::uint32_t kBriefMost = 100;

    // erpc_process.cpp
    void start_process(ErpcNode& node);
    void start_threads(ErpcNode& node);
    void set_handlers(ErpcNode& node);
    void stop_process(ErpcNode& node);

    // erpc_world.cpp: time, turns, harm
    void turn(ErpcNode& node);
    void on_turn(ErpcNode& node);
    void receive_elsewhere();
    void harm(ErpcNode& node);
    void partition(ErpcNode& node, bool apart);
    void run_ahead(ErpcNode& node, std::size_t peer);
    void heal();
    void run_until(Instant end);
    void read_clock(ErpcNode& node);
    void jump(ErpcNode& node);
    [[nodiscard]] Instant wakes_at(const ErpcNode& node) const;
    [[nodiscard]] Instant next_event() const;
    [[nodiscard]] Instant soon(Duration every);

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
    void answer(ErpcNode& node, erpc::Endpoint& endpoint, const LateAnswer& answer);
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
    // What a handler begins with: the request is whole, new, and as it was sent. False: something was broken.
    [[nodiscard]] bool begin(ErpcNode& node, std::span<const std::uint8_t> payload, CallTag& tag);
    void check_order(ErpcNode& node, SessionId session, const CallTag& tag);
    void check_result(ErpcNode& node, const CallRecord& call, const erpc::CallResult& result);
    void check_bounds(const ErpcNode& node);
    void run_until_answered();
    void check_progress();
    void check_end();

    WorldPlan plan_;
    Instant now_{};
    Random random_;
    FaultMix mix_;
    Network network_;
    Stranger stranger_;
    std::uint16_t path_mtu_bytes_;
    Babbler babbler_;
    Intruder intruder_;
    std::size_t clients_;
    Duration peer_timeout_;
    Instant next_babble_;
    Instant next_intrusion_;
    std::size_t slow_ = ~std::size_t{0};  // the node whose turns take long
    erpc::CongestionConfig congestion_{};
    std::vector<std::unique_ptr<ErpcNode>> nodes_;
    std::deque<CallRecord> calls_;  // by serial; a record stays where it is
    std::uint64_t processes_ = 0;
    Instant settled_ = Instant::never();  // from here on no session is lost
    bool healed_ = false;
    bool calling_ = true;
    bool in_order_ = false;  // requests of one session arrive in the order of their posting
    WorldCounters counters_;
    std::optional<std::string> broken_;
};

}  // namespace cairn::sim
