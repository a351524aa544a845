// A worker in a simulated world of calls over reliable connections: the production endpoint, its users' operations, and
// the state of the checks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/world.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/sim/linked_endpoint.hpp"
#include "rpc/sim/linked_stranger.hpp"
#include "rpc/sim/messages.hpp"

namespace cairn::sim {

class LinkedCalling;
class LinkedOracle;
class LinkedServing;

// The way in which a request is handled. It is the request's type on the wire.
enum class Handling : std::uint8_t {
    AtOnce = 1,
    Later,     // without its payload
    Retained,  // later, with its payload; the answer may be a part of the payload
    Nested,    // after a call to another host, or over the session of the request
    Refused,
    Background,  // on a thread, which the world simulates
    Legacy,      // later; on a thread once a request has outlasted a slice
    Nobody,      // there is no such handler
};

// One call, from its posting to its completion. It never moves.
struct LinkedCall {
    CallTag tag{};  // its client is the number of a node
    Handling handling = Handling::AtOnce;
    std::vector<std::uint8_t> request;
    rpc::MsgBuffer response{};      // the call's response buffer; invalid if it has none
    std::uint32_t answer_room = 0;  // size of the buffer, or the endpoint's size
    std::uint32_t written = 0;      // bytes of the answer that the handler wrote
    std::uint64_t session = 0;      // serial of the session; 0: the checks do not distinguish its calls
    rpc::CallId id = 0;
    Instant deadline = Instant::never();  // by its client's clock
    Instant over = Instant::never();      // the same by the world's clock
    bool ends_with_endpoint = false;
    bool odd = false;        // the call goes to a hostile peer
    bool abandoned = false;  // the call was never posted, or its client was restarted
    bool echoed = false;     // the answer is a part of the request
    bool refused = false;
    bool cancelled = false;
    std::uint32_t executions = 0;
    std::uint32_t completions = 0;
};

// A request that is answered later. `payload` is set if it was retained.
struct KeptRequest {
    Instant due{};
    rpc::RequestHandle handle{};
    std::uint32_t serial = 0;
    std::span<const std::uint8_t> payload{};
    rpc::KeptRequest kept{};
    bool forgotten = false;  // the handler never answers it
};

// A session that its client believes to be alive.
struct LinkedSession {
    SessionId id{};
    std::uint64_t serial = 0;  // counts all sessions in the world
    std::size_t peer = 0;      // the peer's host
    bool odd = false;          // the peer is hostile; only the session's end is promised
    bool open = false;
};

struct LinkedLimits {
    std::uint16_t sessions_max = 0;
    std::uint32_t calls_max = 0;
    std::uint32_t job_answer_bytes = 0;  // the longest answer of a thread; the same at all nodes
};

struct LinkedNode {
    LinkedOracle* oracle = nullptr;
    LinkedCalling* calling = nullptr;
    LinkedServing* serving = nullptr;
    Node* host = nullptr;
    AlignedMemory memory;  // of the pool

    [[nodiscard]] Instant now() const noexcept { return host->now(); }  // by the host's own clock
    [[nodiscard]] LinkedSession* find(SessionId id) noexcept {
        for (LinkedSession& each : sessions) {
            if (each.id == id) {
                return &each;
            }
        }
        return nullptr;
    }

    // The state of the process. A restart makes it anew.
    std::unique_ptr<connections::Home> own_home;  // unless other users of the worker have one
    std::unique_ptr<verbs::Device> device;
    std::optional<rpc::MsgPool> pool;
    std::unique_ptr<LinkedStranger> stranger;
    std::unique_ptr<LinkedEndpoint> endpoint;
    LinkedLimits limits{};            // the endpoint's
    std::uint64_t buffers_begun = 0;  // buffers that the endpoint holds from its beginning
    std::vector<LinkedSession> sessions;
    std::vector<KeptRequest> kept;
    std::map<std::uint64_t, KeptRequest> nested;            // by serial of the inner call
    std::set<std::uint32_t> pending;                        // serials of the node's calls
    std::set<std::pair<Instant, std::uint32_t>> deadlines;  // deadlines of these calls, with the serials
    std::map<std::uint64_t, std::uint32_t> last_executed;   // by session: serial of the call that was executed last
    Instant next_act{};
    int ending = 0;  // inside completions of calls whose session ends; the callback of that end comes after them
};

}  // namespace cairn::sim
