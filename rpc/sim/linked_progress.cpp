// Checks of progress in a network without faults.
#include <algorithm>
#include <numeric>

#include "rpc/sim/linked_scenario.hpp"

namespace cairn::sim {

namespace {

constexpr Duration kStep = milliseconds(2);
constexpr int kCallsEach = 6;

}  // namespace

template <class Done>
void LinkedScenario::run_until(Done&& done, const char* promise) {
    const Instant limit = world_.now() + plan_.longest_end;
    while (world_.now() < limit && !world_.broken() && !done()) {
        world_.run_until(world_.now() + kStep);
    }
    for (const auto& node : nodes_) {
        if (world_.broken() || done()) {
            return;
        }
        // Names the first node that has something left.
        oracle_.check(node->pending.empty() && node->kept.empty() && node->endpoint->sessions_open() == 0, promise,
                      node.get());
    }
    oracle_.check(done(), promise);
}

void LinkedScenario::run_until_answered() {
    run_until(
        [this] {
            return std::all_of(nodes_.begin(), nodes_.end(),
                               [](const auto& node) { return node->pending.empty() && node->kept.empty(); });
        },
        "no call stays pending once the network healed");
}

std::size_t LinkedScenario::own_sessions() const {
    return std::accumulate(nodes_.begin(), nodes_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& node) { return sum + node->sessions.size(); });
}

std::size_t LinkedScenario::sessions_open() const {
    return std::accumulate(nodes_.begin(), nodes_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& node) { return sum + node->endpoint->sessions_open(); });
}

// True if each session is open, and has one at its peer.
bool LinkedScenario::is_whole() const {
    const bool open = std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
        return std::all_of(node->sessions.begin(), node->sessions.end(),
                           [](const LinkedSession& session) { return session.open; });
    });
    return open && sessions_open() == 2 * own_sessions();
}

// Makes calls that wait, whether or not other calls wait, too.
void LinkedScenario::call_and_wait() {
    for (const auto& node : nodes_) {
        if (!node->sessions.empty() && !world_.broken()) {
            const LinkedSession session = node->sessions[random_.below(node->sessions.size())];
            system_.call_and_wait(*node, session);
        }
    }
}

// Uses each session. Then all users are silent for long.
void LinkedScenario::use_all() {
    const LinkedCounters before = oracle_.counters();
    const std::size_t sessions = own_sessions();
    for (const auto& node : nodes_) {
        node->host->read_clock();
        for (const LinkedSession& session : std::vector<LinkedSession>(node->sessions)) {
            calling_.post_some(*node, session, kCallsEach);
        }
        if (world_.mix().node.clock_jump_every.ns != 0) {
            node->host->jump();  // a jump costs no session
        }
    }
    call_and_wait();
    run_until_answered();
    const LinkedCounters& after = oracle_.counters();
    oracle_.check(sessions == 0 || after.calls > before.calls, "healed sessions take calls");
    oracle_.check(after.disconnected == before.disconnected && after.calls_lost == before.calls_lost &&
                      after.deadlines_passed == before.deadlines_passed,
                  "every call after healing is answered");
    world_.run_until(world_.now() + plan_.peer_timeout * 3);  // only probes keep the sessions
    oracle_.check(sessions == own_sessions() && is_whole(), "idle sessions stay");
}

void LinkedScenario::check_nothing_left() {
    for (const auto& node : nodes_) {
        const roce::Engine& engine = node->host->worker().engine();
        oracle_.check(node->pool->live() == node->buffers_begun, "without sessions no message buffer is kept",
                      node.get());
        oracle_.check(node->endpoint->requests_kept() == 0, "without sessions no request is kept", node.get());
        oracle_.check(!plan_.alone || (engine.queue_pairs() == 0 && engine.held_packets() == 0),
                      "without sessions the engine keeps nothing", node.get());
        oracle_.check(!plan_.alone || node->host->worker().next_deadline() == Instant::never(),
                      "a timer rings for nobody", node.get());
    }
}

void LinkedScenario::end_all() {
    for (const auto& node : nodes_) {
        node->host->read_clock();
        for (const LinkedSession& session : std::vector<LinkedSession>(node->sessions)) {
            calling_.disconnect(*node, session.id);
        }
    }
    run_until([this] { return sessions_open() == 0; }, "every session ends");
    check_nothing_left();
}

// Connects each worker to each other host, one after the other, so that there is always room for one.
void LinkedScenario::connect_each() {
    for (const auto& node : nodes_) {
        for (std::size_t to = 0; to < world_.hosts() && !world_.broken(); ++to) {
            if (to == node->host->host()) {
                continue;
            }
            node->host->read_clock();
            oracle_.check(calling_.connect(*node, to, false) != nullptr, "an endpoint without sessions takes one",
                          node.get());
            run_until([this] { return is_whole(); }, "a session comes about in a network that is well");
            use_all();
            end_all();
        }
    }
}

// Checks progress, whatever happened before.
void LinkedScenario::check_progress() {
    call_and_wait();
    run_until_answered();
    world_.run_until(world_.now() + plan_.peer_timeout * 2);  // an end that has lost its peer may not know it yet
    run_until([this] { return is_whole(); }, "every session is whole, or both ends know that it is over");
    if (world_.broken()) {
        return;
    }
    for (const auto& node : nodes_) {
        system_.check_quiet(*node);
    }
    calling_.set_settled();
    use_all();
    end_all();
    connect_each();
}

void LinkedScenario::wind_up() {
    oracle_.check(sessions_open() == 0, "nobody begins a session by itself");
}

void LinkedScenario::check_end() {
    const LinkedCounters& all = oracle_.counters();
    oracle_.check(all.ends.breaches <= all.ends.strangers_connected, "only strangers break rules");
}

}  // namespace cairn::sim
