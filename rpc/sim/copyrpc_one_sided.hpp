// READs and WRITEs of copyrpc in a simulated world. Handlers open memory to the sessions of their requests, and the
// users of these sessions READ and WRITE there. Each READ must yield the bytes that were WRITTEN before, in the order
// of the posts.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/sim/linked_oracle.hpp"

namespace cairn::sim {

struct OneSidedCounters {
    std::uint64_t opened = 0;
    std::uint64_t reads = 0;  // READs that were done
    std::uint64_t writes = 0;
    std::uint64_t ended = 0;  // operations that ended with their session

    friend bool operator==(const OneSidedCounters&, const OneSidedCounters&) = default;
};

class CopyrpcOneSided {
public:
    explicit CopyrpcOneSided(World& world) : world_(world), random_(world.random()), parts_(world.nodes()) {}

    [[nodiscard]] const OneSidedCounters& counters() const noexcept { return counters_; }
    void start(LinkedNode& node, copyrpc::Endpoint& endpoint);
    // Ends a node's part. The node's endpoint has ended.
    void stop(LinkedNode& node);
    // Called by a handler of the node for a call. May open memory to the call's session.
    void on_request(LinkedNode& node, SessionId by, const LinkedCall& call);
    // May post operations over the session, if memory is open to it. Returns true if it did.
    bool act(LinkedNode& node, const LinkedSession& session);
    // Checks that no operation is pending.
    void check_quiet(const LinkedNode& node);

private:
    static constexpr std::uint32_t kPlaces = 3;  // per process
    static constexpr std::uint32_t kPlaceBytes = 8192;

    // Memory that a process has opened to a session of another.
    struct Opened {
        std::uint64_t session = 0;  // serial of the client's session
        std::size_t server = 0;     // the server's node
        copyrpc::Place place{};
        std::span<std::uint8_t> memory{};
        std::vector<std::uint8_t> expected;  // content once all posted operations are done
        std::uint64_t writes = 0;            // posted WRITEs
        bool alive = true;                   // the server's process lives
    };
    struct Work {
        CopyrpcOneSided* all = nullptr;
        LinkedNode* node = nullptr;
        Opened* opened = nullptr;
        std::vector<std::uint8_t> memory;
        std::vector<std::uint8_t> expected;  // for a READ
        std::uint64_t writes = 0;            // posted up to this one
        bool reads = false;
        bool ends_with_endpoint = false;
        std::uint32_t completions = 0;
        bool forgotten = false;
    };
    // A node's part of a process.
    struct Part {
        copyrpc::Endpoint* endpoint = nullptr;
        std::vector<std::uint8_t> memory;
        std::uint32_t places = 0;
        std::vector<Work*> pending;
    };
    [[nodiscard]] Part& part_of(const LinkedNode& node) { return parts_[node.host->index()]; }
    [[nodiscard]] Opened* find(std::uint64_t session);
    void post(LinkedNode& node, const LinkedSession& session, Opened& opened);
    void complete(Work& work, const rpc::CallResult& result);

    World& world_;
    Random& random_;
    std::vector<Part> parts_;    // by node
    std::deque<Opened> opened_;  // nothing moves these
    std::deque<Work> works_;
    OneSidedCounters counters_;
};

}  // namespace cairn::sim
