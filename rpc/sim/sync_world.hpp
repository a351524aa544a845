// Measures how long clients stall that call several ScaleRPC servers at once, in virtual time (ScaleRPC 4.2). The
// servers' slices are synchronised or not. Their clocks differ and drift.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/sim_port.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/scalerpc/batch_calls.hpp"
#include "rpc/scalerpc/endpoint.hpp"
#include "rpc/scalerpc/time_sync.hpp"

namespace cairn::sim {

enum class Synchronisation : std::uint8_t {
    None,   // servers group their clients, and switch independently
    Apart,  // servers have the same cohorts and slices, but no time server
    Full,   // the first is the time server of the others
};
[[nodiscard]] std::string_view text_of(Synchronisation how) noexcept;

struct SyncPlan {
    Synchronisation how = Synchronisation::Full;
    std::size_t servers = 3;
    std::size_t clients = 24;
    std::uint32_t cohorts = 3;
    std::uint32_t batch = 4;  // calls to each server; after the last answer the next batch follows
    Duration slice = microseconds(100);
    Duration period = milliseconds(100);
    std::int64_t drift_ppm_most = 50;  // of a host's clock
    Duration warm_up = milliseconds(250);
    Duration measured = milliseconds(250);
    std::uint64_t seed = 1;
};

struct SyncResult {
    double stall_fraction = 0;  // part of the time in a slice somewhere in which the client waits for another server
    std::uint64_t batches = 0;
    std::uint64_t failed = 0;  // failed calls
    std::uint64_t switches = 0;
    Duration apart_p50{};  // median distance of the servers' switches to the same slot
    Duration apart_most{};
};

class SyncWorld {
public:
    explicit SyncWorld(const SyncPlan& plan);
    ~SyncWorld();
    SyncWorld(const SyncWorld&) = delete;
    SyncWorld& operator=(const SyncWorld&) = delete;
    [[nodiscard]] SyncResult run();

private:
    using Follower = scalerpc::TimeFollower<scalerpc::Endpoint>;
    // A host's clock, and when its slots began.
    struct HostClock {
        Duration offset{};
        std::int64_t drift_ppm = 0;
        Duration phase{};

        [[nodiscard]] Instant local(Instant now) const noexcept;
        [[nodiscard]] Instant global(Instant local) const noexcept;
    };
    struct Node {
        SyncWorld* world = nullptr;
        std::size_t index = 0;
        HostClock time{};
        std::unique_ptr<SimPort> port;
        AlignedMemory memory;  // of the pool
        std::optional<rpc::MsgPool> pool;
        std::unique_ptr<worker::Worker> worker;
        std::unique_ptr<connections::Home> home;
        std::unique_ptr<verbs::Device> device;
        std::optional<scalerpc::SliceClock> clock;          // for a server
        std::unique_ptr<scalerpc::Endpoint> time_endpoint;  // for questions of the time; it has no slices
        std::unique_ptr<scalerpc::Endpoint> endpoint;
        std::unique_ptr<Follower> follower;
        std::uint64_t slice = 0;  // number of the server's slice
        std::vector<SessionId> sessions;
        std::optional<scalerpc::BatchCalls> calls;  // for a client
        std::vector<rpc::MsgBuffer> answers;
        std::uint64_t batches = 0;
        std::uint64_t failed = 0;
    };

    void start(Node& node);
    [[nodiscard]] scalerpc::EndpointConfig config_of(const Node& node) const;
    void connect(Node& client);
    void follow(Node& server);
    void act(Node& client, Instant now);
    void post_batch(Node& client, Instant now);
    void turn(Node& node);
    void note_switch(Node& server);
    void run_until(Instant end);
    [[nodiscard]] SyncResult counted() const;

    const SyncPlan plan_;
    Network network_;
    Instant now_{1'000'000};
    std::vector<std::unique_ptr<Node>> nodes_;  // servers, then clients
    std::vector<Instant> wakes_;
    struct Seen {
        std::size_t servers = 0;
        Instant first{};
    };
    std::vector<Seen> slots_;  // the slots within the measured time, by number
    std::vector<Duration> apart_;
    std::uint64_t first_slot_ = 0;
    bool measures_ = false;
};

}  // namespace cairn::sim
