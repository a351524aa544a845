#include "tests/sim/erpc_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace cairn::sim {

namespace {

constexpr std::size_t kBuffers = 512;
constexpr Duration kIntrusionEvery = microseconds(500);
constexpr std::array<std::uint16_t, 3> kPathMtus{256, 1024, 4096};
constexpr std::array<Duration, 4> kJumps{microseconds(50), milliseconds(5), milliseconds(300), seconds(10)};

}  // namespace

WorldCounters& WorldCounters::operator+=(const WorldCounters& other) noexcept {
    for (const auto field : {&WorldCounters::calls,        &WorldCounters::calls_ok,   &WorldCounters::deadlines_passed,
                             &WorldCounters::cancelled,    &WorldCounters::peers_lost, &WorldCounters::too_long,
                             &WorldCounters::answers_lost, &WorldCounters::nested,     &WorldCounters::awaited,
                             &WorldCounters::jobs,         &WorldCounters::restarts,   &WorldCounters::clock_went_back,
                             &WorldCounters::clock_leapt,  &WorldCounters::babbled,    &WorldCounters::odd_calls,
                             &WorldCounters::forged,       &WorldCounters::refused,    &WorldCounters::starved,
                             &WorldCounters::intruded,     &WorldCounters::replayed,   &WorldCounters::spoofed}) {
        this->*field += other.*field;
    }
    drops += other.drops;
    return *this;
}

// The last places in the network are the stranger's, the babbler's, the intruder's and the bystander's.
ErpcWorld::ErpcWorld(std::uint64_t seed, const WorldPlan& plan)
    : plan_(plan),
      random_(seed),
      mix_(FaultMix::from_seed(seed)),
      network_(plan.clients + plan.servers + 4, seed * 3 + 1, plan.family),
      stranger_(network_, plan.clients + plan.servers, seed * 5 + 1),
      path_mtu_bytes_(kPathMtus[random_.below(kPathMtus.size())]),
      babbler_(network_, plan.clients + plan.servers + 1, plan.clients + plan.servers, path_mtu_bytes_, seed * 7 + 1),
      intruder_(network_, plan.clients + plan.servers + 2, plan.clients + plan.servers + 3, plan.clients,
                plan.clients + plan.servers, path_mtu_bytes_, seed * 11 + 1),
      clients_(plan.clients),
      peer_timeout_(random_.chance(kMillion / 2) ? milliseconds(30) : plan.patience_most),
      next_babble_(soon(mix_.babble_every)),
      next_intrusion_(random_.chance(kMillion / 2) ? soon(kIntrusionEvery) : Instant::never()) {
    if (mix_.node.turn_max.ns != 0) {
        slow_ = random_.below(plan.clients + plan.servers);
    }
    congestion_.algorithm = static_cast<erpc::CongestionAlgorithm>(random_.below(3));
    congestion_.link_bits_per_s = 1e9;
    network_.set_faults(mix_.link, mix_.shape);
    network_.set_tap([this](std::size_t, const Frame& frame) {
        if (random_.chance(mix_.forge_per_million)) {
            stranger_.forge_from(frame, now_);
        }
        if (next_intrusion_ < Instant::never()) {
            intruder_.overhear(frame);
        }
    });
    for (std::size_t i = 0; i < plan.clients + plan.servers; ++i) {
        auto node = std::make_unique<ErpcNode>();
        node->world = this;
        node->index = i;
        node->is_client = i < clients_;
        node->port = std::make_unique<SimPort>(network_, i, kBuffers, random_.next());
        node->port->set_faults(mix_.port);
        node->port->set_witness([this, into = node.get()](const Frame& frame, bool) {
            into->heard[network_.node_of(frame.source())] = into->now;
        });
        node->memory = AlignedMemory(plan_.pool_bytes());
        node->counter_ahead = random_.between(Duration{}, seconds(3600));
        node->next_stall = soon(mix_.node.stall_every);
        node->next_restart = soon(mix_.node.restart_every);
        node->next_partition = soon(mix_.node.partition_every);
        node->next_jump = soon(mix_.node.clock_jump_every);
        nodes_.push_back(std::move(node));
        start_process(*nodes_.back());
    }
}

Instant ErpcWorld::soon(Duration every) {
    return every.ns == 0 ? Instant::never() : now_ + random_.between(Duration{}, every * 2);
}

void ErpcWorld::turn(ErpcNode& node) {
    const bool arrived = network_.next_arrival(node.index) <= now_;
    if (now_ < node.stalled_until || (!arrived && wakes_at(node) > now_)) {
        return;
    }
    read_clock(node);
    if (node.now - node.looked_at_time >= peer_timeout_ / 2 - erpc::kScanInterval) {
        node.returned = node.now;
    }
    node.looked_at_time = node.now;
    node.woken = false;
    while (node.worker->turn(node.now)) {  // all that has come: a slow node's time is its users', not its turns'
    }
    node.endpoint->check_invariants();
    if (node.index == slow_) {
        node.stalled_until = now_ + random_.between(milliseconds(1), mix_.node.turn_max);
    }
}

// What came is delivered, what is due was done: the users' part.
void ErpcWorld::on_turn(ErpcNode& node) {
    check_bounds(node);
    begin_jobs(node);
    answer_late(node);
    if (calling_ && node.is_client && now_ >= node.next_call) {
        node.next_call = now_ + random_.between(microseconds(1), microseconds(400));
        act(node);
    }
}

void ErpcWorld::harm(ErpcNode& node) {
    if (now_ >= node.next_stall) {
        node.stalled_until = now_ + random_.between(Duration{}, mix_.node.stall_max);
        node.next_stall = node.stalled_until + random_.between(Duration{}, mix_.node.stall_every * 2);
    }
    if (now_ >= node.next_jump) {
        jump(node);
        node.next_jump = soon(mix_.node.clock_jump_every);
    }
    if (now_ >= node.next_restart) {
        ++counters_.restarts;
        stop_process(node);
        start_process(node);
        node.next_restart = soon(mix_.node.restart_every);
    }
    if (now_ >= node.next_partition) {
        partition(node, true);
        node.next_partition = Instant::never();
        node.partition_ends = now_ + random_.between(Duration{}, mix_.node.partition_max);
        if (mix_.node.runs_ahead && node.is_client) {
            run_ahead(node, (node.index + 1) % nodes_.size());
        }
    }
    if (now_ >= node.partition_ends) {
        partition(node, false);
        node.partition_ends = Instant::never();
        node.next_partition = soon(mix_.node.partition_every);
    }
}

void ErpcWorld::jump(ErpcNode& node) {
    const Duration far = random_.between(Duration{}, kJumps[random_.below(kJumps.size())]);
    node.counter_ahead = random_.chance(kMillion / 2) ? node.counter_ahead + far : node.counter_ahead - far;
}

void ErpcWorld::read_clock(ErpcNode& node) {
    node.now = node.time.on_reading(now_ + node.counter_ahead);
    node.clock_ahead = node.now - now_;
    node.port->set_clock_ahead(node.clock_ahead);
}

// Hardly a request reaches its peer: only their numbers are used up.
void ErpcWorld::run_ahead(ErpcNode& node, std::size_t peer) {
    constexpr int kCalls = 4'200;
    std::array<std::uint8_t, sizeof(CallTag)> request{};
    fill_request(request, {static_cast<std::uint32_t>(peer), kInnerCall, 16});
    read_clock(node);
    const auto session = std::find_if(node.sessions.begin(), node.sessions.end(),
                                      [peer](const ClientSession& each) { return each.peer == peer; });
    for (int i = 0; peer >= clients_ && session != node.sessions.end() && i < kCalls; ++i) {
        erpc::Call call;
        call.type = kAtOnce;
        call.request = request;
        node.endpoint->cancel(node.endpoint->post(session->id, call, node.now).id, node.now);
        node.worker->sender().flush(node.now);
    }
}

// Between this node and the next: in both directions, or in one.
void ErpcWorld::partition(ErpcNode& node, bool apart) {
    const std::size_t other = (node.index + 1) % nodes_.size();
    network_.link(node.index, other).set_partitioned(apart);
    network_.link(other, node.index).set_partitioned(apart && node.index % 2 == 0);
}

void ErpcWorld::heal() {
    healed_ = true;
    next_babble_ = Instant::never();
    const FaultMix whole = mix_.healed();
    network_.set_faults(whole.link, whole.shape);
    for (auto& node : nodes_) {
        node->port->set_faults({});
        node->stalled_until = std::min(node->stalled_until, now_);
        read_clock(*node);
        for (const ClientSession& session : std::exchange(node->odd_sessions, {})) {
            node->endpoint->disconnect(session.id, node->now);
        }
        node->next_stall = node->next_restart = node->next_jump = Instant::never();
        node->next_partition = node->partition_ends = Instant::never();
    }
    for (std::size_t from = 0; from < network_.nodes(); ++from) {
        for (std::size_t to = 0; to < network_.nodes(); ++to) {
            network_.link(from, to).set_partitioned(false);
        }
    }
}

// When it has something to do of its own.
Instant ErpcWorld::wakes_at(const ErpcNode& node) const {
    if (node.woken) {
        return now_;
    }
    const Instant deadline = node.worker->next_deadline();
    Instant wake = deadline == Instant::never() ? deadline : deadline - node.clock_ahead;
    wake = calling_ && node.is_client ? std::min(wake, node.next_call) : wake;
    for (const LateAnswer& each : node.late) {
        wake = std::min(wake, each.due);
    }
    return wake;
}

Instant ErpcWorld::next_event() const {
    Instant next = std::min({network_.next_arrival(), next_babble_, next_intrusion_});
    for (const auto& node : nodes_) {
        next = std::min({next, std::max(wakes_at(*node), node->stalled_until), node->next_stall, node->next_restart,
                         node->next_jump, node->next_partition, node->partition_ends});
        for (const Instant end : node->job_ends) {
            next = std::min(next, end);
        }
    }
    return std::max(next, now_ + microseconds(1));
}

void ErpcWorld::run_until(Instant end) {
    while (now_ < end && !broken_) {
        for (auto& node : nodes_) {
            if (!healed_) {
                harm(*node);
            }
        }
        for (auto& node : nodes_) {
            end_jobs(*node);
            turn(*node);
        }
        receive_elsewhere();
        now_ = std::min(next_event(), end);
    }
}

void ErpcWorld::receive_elsewhere() {
    while (network_.receive(nodes_.size(), now_)) {
    }  // nobody reads what the stranger gets
    while (const std::optional<Frame> frame = network_.receive(babbler_.node(), now_)) {
        if (!healed_) {
            babbler_.on_frame(*frame, now_);
        }
    }
    while (const std::optional<Frame> frame = network_.receive(intruder_.node(), now_)) {
        intruder_.on_frame(*frame, now_);
    }
    while (const std::optional<Frame> frame = network_.receive(intruder_.bystander(), now_)) {
        intruder_.on_bystanders_frame(*frame);
    }
    check(!intruder_.amplified(), "who never spoke gets no more than three bytes for each in its name");
    if (now_ >= next_intrusion_) {
        intruder_.act(now_);
        next_intrusion_ = soon(kIntrusionEvery);
    }
    if (now_ >= next_babble_) {
        babbler_.babble(clients_ + random_.below(nodes_.size() - clients_), now_);
        next_babble_ = soon(mix_.babble_every);
    }
}

std::optional<std::string> ErpcWorld::run() {
    run_until(now_ + plan_.harmful);
    heal();
    settled_ = now_ + peer_timeout_ * 2 + mix_.link.late_copy_most;
    calling_ = false;
    run_until(now_ + plan_.healing);
    check_progress();
    check_end();
    return broken_;
}

WorldCounters ErpcWorld::counters() const {
    WorldCounters all = counters_;
    all.calls = calls_.size();
    all.forged = stranger_.forged();
    all.babbled = babbler_.sent();
    all.intruded = intruder_.opened();
    all.replayed = intruder_.replayed();
    all.spoofed = intruder_.spoofed();
    for (const auto& node : nodes_) {
        all.drops += node->drops;
        all.refused += node->port->refused();
        all.starved += node->port->starved();
    }
    return all;
}

std::string ErpcWorld::text() const {
    const LinkCounters totals = network_.totals();
    const WorldCounters all = counters();
    return fmt::format(
        "{}, peer timeout {} ns; {} calls, {} answered, {} too late, {} cancelled, {} nested, {} peers lost, {} "
        "restarts; "
        "{} frames, {} lost, {} doubled, {} corrupted, {} forged, {} babbled",
        mix_.text(), peer_timeout_.ns, calls_.size(), all.calls_ok, all.deadlines_passed, all.cancelled, all.nested,
        all.peers_lost, all.restarts, totals.offered,
        totals.lost + totals.burst_lost + totals.tail_dropped + totals.partitioned,
        totals.duplicated + totals.late_copies, totals.corrupted, all.forged, all.babbled);
}

}  // namespace cairn::sim
