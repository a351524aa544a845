// Checks of the progress that a network without faults allows.
#include <algorithm>
#include <numeric>

#include "lib/sim/verbs/verbs_scenario.hpp"

namespace cairn::sim {

namespace {

constexpr Duration kStep = milliseconds(5);

}  // namespace

// Returns whether each of the host's connections is up, its requests are done, and its peer has the same connection in
// the same process.
bool VerbsScenario::settled(const VerbsHost& host) {
    const auto up = [this](const VerbsEnd* end) {
        const VerbsEnd* const peer = ends_.find(end->peer);
        return end->stage == VerbsStage::Up && end->out.pending.empty() && peer->stage == VerbsStage::Up &&
               peer->peer == end->serial;
    };
    return host.asked.empty() && std::all_of(host.live.begin(), host.live.end(), up) &&
           (plan_.has_guests || host.home->manager().connections() == host.live.size());
}

void VerbsScenario::run_until_settled(const char* promise) {
    const auto all_settled = [this] {
        return std::all_of(hosts_.begin(), hosts_.end(), [this](const auto& host) { return settled(*host); });
    };
    const Instant limit = world_.now() + plan_.longest_end();
    while (world_.now() < limit && !world_.broken() && !all_settled()) {
        world_.run_until(world_.now() + kStep);
    }
    world_.check(all_settled(), promise);
}

// Requires progress. An end that sends learns whether its peer is there.
void VerbsScenario::check_progress() {
    for (const auto& host : hosts_) {
        host->acts_at = Instant::never();
        for (VerbsEnd* const end : host->live) {
            if (end->stage == VerbsStage::Up) {
                traffic_.post_probe(*end);
            }
        }
    }
    run_until_settled("every connection is whole, or both ends know that it is over");
    if (world_.broken()) {
        return;
    }
    for (const auto& host : hosts_) {
        for (VerbsEnd* const end : host->live) {
            const VerbsEnd& peer = *ends_.find(end->peer);
            world_.check(peer.process == world_.node(peer.host).process(), "a connection outlived its peer's process",
                         &host->node);
            traffic_.check_target(*end);
        }
    }
    const std::uint64_t failed = counters_.failed();
    const std::size_t made = live_ends() + connect_all();
    if (!world_.broken()) {
        use_all();
    }
    world_.check(failed == counters_.failed(), "a request failed in a network that is well");
    world_.check(made == live_ends(), "a connection ended that nobody ended");
    if (!world_.broken()) {
        datagrams_.check_progress();
    }
}

// Returns whether every worker that listens there has room.
bool VerbsScenario::has_room(std::size_t place) const {
    const auto workers = world_.workers_of(place);
    return std::none_of(workers.begin(), workers.end(), [&](const auto& node) {
        return processes_.listens(*node) && hosts_[node->index()]->is_full();
    });
}

std::size_t VerbsScenario::live_ends() const {
    return std::accumulate(hosts_.begin(), hosts_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& host) { return sum + host->live.size(); });
}

// Connects each worker to each other host. Returns how many ends are new.
std::size_t VerbsScenario::connect_all() {
    const std::uint64_t before = counters_.established;
    std::uint64_t asked = 0;
    for (const auto& host : hosts_) {
        for (std::size_t to = 0; to < world_.hosts(); ++to) {
            if (to != host->node.host() && !host->is_full() && has_room(to) && !world_.broken()) {
                host->node.read_clock();
                connections_.connect(*host, to);
                ++asked;
                run_until_settled("a new connection comes about in a network that is well");
            }
        }
    }
    world_.check(counters_.established - before == asked * 2, "a new connection does not come about");
    return asked * 2;
}

// Requires that each request is done and each connection stays.
void VerbsScenario::use_all() {
    for (int rounds = 0; rounds < 3; ++rounds) {
        for (const auto& host : hosts_) {
            for (VerbsEnd* const end : host->live) {
                traffic_.post_some(*end);
            }
        }
        world_.run_until(world_.now() + microseconds(300));
        for (const auto& host : hosts_) {
            for (VerbsEnd* const end : host->live) {
                traffic_.post_probe(*end);
            }
            if (world_.mix().node.clock_jump_every.ns != 0) {
                host->node.jump();  // a jump of the clock ends no connection
            }
        }
        run_until_settled("every request is done in a network that is well");
    }
    for (const auto& host : hosts_) {
        for (VerbsEnd* const end : host->live) {
            traffic_.check_target(*end);
            world_.check(end->out.messages_done == end->out.messages.size(), "a message that nobody got", &host->node);
        }
    }
}

void VerbsScenario::wind_up() {
    for (const auto& host : hosts_) {
        host->node.read_clock();
        for (VerbsEnd* const end : std::vector<VerbsEnd*>(host->live)) {
            if (end->stage == VerbsStage::Up) {
                connections_.leave(*host, *end);
            }
        }
    }
    run_until_settled("every connection ends");
    datagrams_.wind_up();
    for (const auto& host : hosts_) {
        const roce::Engine& engine = host->node.worker().engine();
        world_.check(host->live.empty(), "a connection that does not end", &host->node);
        world_.check(host->shared->size() == host->shared_posted.size(), "a shared receive request that nobody has",
                     &host->node);
        world_.check(plan_.has_guests || (engine.queue_pairs() == 0 && engine.held_packets() == 0),
                     "the engine keeps something", &host->node);
        world_.check(!plan_.alone || host->node.worker().next_deadline() == Instant::never(),
                     "a timer rings for nobody", &host->node);
        world_.check(host->unused_untouched(), "memory that nobody has was written to", &host->node);
    }
}

void VerbsScenario::check_end() {
    processes_.end();
    for (const auto& host : hosts_) {
        const Node& node = host->node;
        world_.check(node.drops().of(roce::Drop::BadIcrc) == node.port().counters().bad_icrcs,
                     "the engine counts every damaged packet", &node);
    }
}

}  // namespace cairn::sim
