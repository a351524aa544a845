// A node's part in a simulated world of eRPC: its threads, the production endpoint, and what the workload and the
// checks remember about it.
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
    ErpcScenario* scenario = nullptr;
    Node* host = nullptr;
    std::size_t index = 0;  // of that
    bool is_client = false;
    AlignedMemory memory;  // of its pool

    [[nodiscard]] Instant now() const noexcept { return host->now(); }  // by its own clock

    // Of the process; a restart makes them anew.
    std::unique_ptr<erpc::BackgroundPool> background;  // stepped: the world plays its threads
    std::vector<Instant> job_ends;                     // by thread; never: it has none
    int frames = 0;                                    // of coroutines
    std::optional<rpc::MsgPool> pool;
    std::unique_ptr<erpc::Endpoint> endpoint;
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
    telemetry::CounterSnapshot<erpc::Drop> drops{};  // counted by the endpoints of its earlier processes
};

}  // namespace cairn::sim
