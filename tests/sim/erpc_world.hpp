// A world of eRPC clients and servers on a simulated network: drives them, does them harm, and holds what they do
// against what eRPC promises.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/erpc/endpoint.hpp"
#include "tests/support/sim/network.hpp"
#include "tests/support/sim/sim_port.hpp"

namespace cairn::sim {

// What each call's content says, so that any party can tell whose it is. The rest of a message follows from it.
struct CallTag {
    std::uint32_t client;
    std::uint32_t serial;
};

// One call, from its posting to its completion.
struct CallRecord {
    std::vector<std::uint8_t> request;
    std::uint32_t response_bytes = 0;
    std::uint32_t executions = 0;
    std::uint32_t completions = 0;
    erpc::CallId id = 0;
    Instant posted{};
    Instant deadline = Instant::never();
    bool abandoned = false;  // its client was restarted
};

class ErpcWorld {
public:
    ErpcWorld(std::uint64_t seed, std::size_t clients, std::size_t servers);
    ~ErpcWorld();

    // Runs with faults, heals, and requires progress. The first promise that was broken, or nothing.
    [[nodiscard]] std::optional<std::string> run();

    [[nodiscard]] std::uint64_t trace_hash() const noexcept { return network_.trace_hash(); }
    [[nodiscard]] const Network& network() const noexcept { return network_; }
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::uint64_t calls_ok() const noexcept { return calls_ok_; }

    static constexpr std::uint8_t kAtOnce = 1;
    static constexpr std::uint8_t kLater = 2;
    static constexpr std::uint8_t kNested = 3;

private:
    struct Node;
    struct LateAnswer {
        Instant due{};
        erpc::RequestHandle handle{};
        std::vector<std::uint8_t> content;
    };

    void start(Node& node);
    void stop(Node& node);
    void turn(Node& node);
    void call_something(Node& node);
    void answer_late(Node& node);
    void do_harm();
    void harm(Node& node);
    [[nodiscard]] Instant next_event() const;
    void run_until(Instant end);
    void heal();
    void check(bool condition, const char* promise, const Node* node = nullptr);
    void check_progress();
    void check_end();

    static void handle(void* context, const erpc::Request& request);
    static void completed(void* context, const erpc::CallResult& result);
    static void nested_completed(void* context, const erpc::CallResult& result);
    static void session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason reason);

    Random random_;
    FaultMix mix_;
    Network network_;
    std::size_t clients_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<CallRecord> calls_;
    Instant now_{};
    bool healed_ = false;
    Instant healed_at_{};
    bool calling_ = true;
    std::uint64_t calls_ok_ = 0;
    std::optional<std::string> broken_;
};

}  // namespace cairn::sim
