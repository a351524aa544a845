// A node of a simulated eRPC world: its threads, the production endpoint, and the state of workload and checks.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/world.hpp"
#include "rpc/common/background.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/sim/messages.hpp"

namespace cairn::sim {

class ErpcScenario;

// One call of a client, from its posting to its completion.
struct CallRecord {
    CallTag tag{};
    std::uint8_t type = 0;
    std::vector<std::uint8_t> request;
    rpc::MsgBuffer response{};  // the call's response buffer; invalid: the call has none
    std::uint32_t executions = 0;
    std::uint32_t completions = 0;
    erpc::CallId id = 0;
    Instant deadline = Instant::never();  // by its client's clock
    bool odd = false;                     // the call goes to the host that sends invalid packets
    bool abandoned = false;               // the call was never posted, or its client was restarted
};

// A request whose handler returned without an answer.
struct LateAnswer {
    Instant due{};
    erpc::RequestHandle handle{};
    CallTag tag{};
    std::uint32_t attempts = 0;  // answers that failed for want of a buffer
    rpc::KeptRequest kept{};     // set once the handler has returned
};

// A session that the client believes to be alive.
struct ClientSession {
    SessionId id{};
    std::size_t peer = 0;
    Instant opened{};  // by the client's clock
};

struct ErpcNode {
    ErpcScenario* scenario = nullptr;
    Node* host = nullptr;
    std::size_t index = 0;  // number of the host
    bool is_client = false;
    AlignedMemory memory;  // memory of the pool

    [[nodiscard]] Instant now() const noexcept { return host->now(); }  // by the host's own clock

    // The state of the process. A restart makes it anew.
    std::unique_ptr<erpc::BackgroundPool> background;  // a stepped pool, whose jobs the world runs
    std::vector<Instant> job_ends;                     // when each thread's job ends; never: the thread has no job
    int frames = 0;                                    // live coroutine frames
    std::optional<rpc::MsgPool> pool;
    std::unique_ptr<erpc::Endpoint> endpoint;
    std::uint16_t credits = 0;
    std::vector<ClientSession> sessions;
    std::vector<ClientSession> odd_sessions;  // sessions with the hostile host; only their end is promised
    std::vector<LateAnswer> late;
    std::map<std::uint64_t, LateAnswer> nested;             // by number of the inner call
    std::deque<std::vector<std::uint8_t>> nested_requests;  // by number of the inner call
    std::set<std::pair<Instant, std::uint32_t>> deadlines;  // deadlines of calls under way, with the calls' serials
    std::map<SessionId, std::uint32_t> last_serial;         // server: serial of the last executed call, by session
    std::vector<Instant> heard;                             // when each node's last frame came, by the host's clock
    Instant looked_at_time{};                               // when the last turn began, by the host's clock
    Instant returned{};                                     // end of the last long absence, which costs no session
    Instant next_call{};
    bool ending = false;  // inside the completion of a call whose session ends; the callback of that end comes after it
    telemetry::CounterSnapshot<erpc::Drop> drops{};  // drops of the endpoints of earlier processes
};

}  // namespace cairn::sim
