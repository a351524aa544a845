// One host of a simulated eRPC world: its port, clock and threads, the production engine and endpoint, and what the
// workload and the checks remember about it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/steady_time.hpp"
#include "rpc/erpc/background.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "tests/sim/actor.hpp"
#include "tests/sim/messages.hpp"
#include "tests/support/sim/aligned_memory.hpp"
#include "tests/support/sim/sim_port.hpp"

namespace cairn::sim {

class ErpcWorld;

// One call of a client, from its posting to its completion.
struct CallRecord {
    CallTag tag{};
    std::uint8_t type = 0;
    std::vector<std::uint8_t> request;
    rpc::MsgBuffer response{};  // invalid: the call gave none
    std::uint32_t executions = 0;
    std::uint32_t completions = 0;
    erpc::CallId id = 0;
    Instant deadline = Instant::never();  // by its client's clock
    bool odd = false;                     // to the babbler
    bool abandoned = false;               // never posted, or its client was restarted
};

// A request whose handler returned without an answer.
struct LateAnswer {
    Instant due{};
    erpc::RequestHandle handle{};
    CallTag tag{};
    std::uint32_t attempts = 0;  // for which there was no buffer
};

// A session that its client holds for alive.
struct ClientSession {
    SessionId id{};
    std::size_t peer = 0;
    Instant opened{};  // by the client's clock
};

struct ErpcNode {
    ErpcWorld* world = nullptr;
    std::size_t index = 0;
    bool is_client = false;
    std::unique_ptr<SimPort> port;
    AlignedMemory memory;  // of its pool

    // Its clock: what the process makes of a counter that is not the world's time.
    SteadyTime time;
    Instant now{};             // of the last look at it
    Duration clock_ahead{};    // of the world, since that look
    Duration counter_ahead{};  // of the world

    // Of the process; a restart makes them anew.
    std::unique_ptr<erpc::BackgroundPool> background;  // stepped: the world plays its threads
    std::vector<Instant> job_ends;                     // by thread; never: it has none
    bool woken = false;                                // by a thread that ended a job
    int frames = 0;                                    // of coroutines
    std::optional<rpc::MsgPool> pool;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<erpc::Endpoint> endpoint;
    std::unique_ptr<Actor> actor;  // after the endpoint: what its users do
    std::uint64_t process = 0;     // its number in the world, from 1
    std::uint16_t credits = 0;
    std::vector<ClientSession> sessions;
    std::vector<ClientSession> odd_sessions;  // with the babbler: nothing is promised of them but their end
    std::vector<LateAnswer> late;
    std::map<std::uint64_t, LateAnswer> nested;             // by the number of the inner call
    std::deque<std::vector<std::uint8_t>> nested_requests;  // by the number of the inner call
    std::set<std::pair<Instant, std::uint32_t>> deadlines;  // of calls under way, with their serials
    std::map<std::uint16_t, std::uint32_t> last_serial;     // server: of the calls executed, by session
    std::vector<Instant> heard;                             // when each node's last frame came, by its own clock
    Instant looked_at_time{};                               // as the next, by its own clock
    Instant returned{};                                     // from an absence that nobody is to suffer for
    Instant next_call{};
    bool ending = false;  // inside the completion of a call whose session ends: of that one hears after its calls

    // What befalls it.
    Instant stalled_until{};
    Instant next_stall = Instant::never();
    Instant next_restart = Instant::never();
    Instant next_jump = Instant::never();
    Instant next_partition = Instant::never();
    Instant partition_ends = Instant::never();
    std::uint64_t bad_icrcs = 0;                     // counted by the engines of its earlier processes
    telemetry::CounterSnapshot<erpc::Drop> drops{};  // and by their endpoints
};

}  // namespace cairn::sim
