#include "tests/sim/erpc_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cairn::sim {

namespace {

constexpr std::size_t kBuffers = 512;
constexpr std::uint32_t kMessageBytesMax = 16'000;  // 70 packets at the smallest path MTU
constexpr std::size_t kPoolBytes = std::size_t{8} << 20U;

}  // namespace

WorldCounters& WorldCounters::operator+=(const WorldCounters& other) noexcept {
    for (const auto field :
         {&WorldCounters::calls, &WorldCounters::calls_ok, &WorldCounters::deadlines_passed, &WorldCounters::cancelled,
          &WorldCounters::peers_lost, &WorldCounters::too_long, &WorldCounters::nested, &WorldCounters::restarts,
          &WorldCounters::wrong_peers, &WorldCounters::forged, &WorldCounters::refused, &WorldCounters::starved}) {
        this->*field += other.*field;
    }
    return *this;
}

// The last place in the network is the stranger's.
ErpcWorld::ErpcWorld(std::uint64_t seed, const WorldPlan& plan)
    : plan_(plan),
      random_(seed),
      mix_(FaultMix::from_seed(seed)),
      network_(plan.clients + plan.servers + 1, seed * 3 + 1, plan.family),
      stranger_(network_, plan.clients + plan.servers, seed * 5 + 1),
      clients_(plan.clients),
      peer_timeout_(random_.chance(kMillion / 2) ? milliseconds(30) : milliseconds(200)) {
    constexpr std::array<std::uint16_t, 3> kPathMtus{256, 1024, 4096};
    path_mtu_bytes_ = kPathMtus[random_.below(kPathMtus.size())];
    congestion_.algorithm = static_cast<erpc::CongestionAlgorithm>(random_.below(3));
    congestion_.link_bits_per_s = 1e9;
    network_.set_faults(mix_.link, mix_.shape);
    network_.set_tap([this](std::size_t, const Frame& frame) {
        if (random_.chance(mix_.forge_per_million)) {
            stranger_.forge_from(frame, now_);
        }
    });
    for (std::size_t i = 0; i < plan.clients + plan.servers; ++i) {
        auto node = std::make_unique<ErpcNode>();
        node->world = this;
        node->index = i;
        node->is_client = i < clients_;
        node->port = std::make_unique<SimPort>(network_, i, kBuffers, random_.next());
        node->port->set_faults(mix_.port);
        node->memory = std::make_unique_for_overwrite<std::uint8_t[]>(kPoolBytes);
        node->heard.resize(network_.nodes());
        node->next_stall = soon(mix_.node.stall_every);
        node->next_restart = soon(mix_.node.restart_every);
        node->next_partition = soon(mix_.node.partition_every);
        nodes_.push_back(std::move(node));
        start(*nodes_.back());
    }
}

Instant ErpcWorld::soon(Duration every) {
    return every.ns == 0 ? Instant::never() : now_ + random_.between(Duration{}, every * 2);
}

void ErpcWorld::start(ErpcNode& node) {
    node.process = ++processes_;
    node.pool.emplace(std::span(node.memory.get(), kPoolBytes));
    node.service.emplace(*node.port);
    node.sender.emplace(*node.port);
    node.credits = static_cast<std::uint16_t>(random_.between(1, 16));
    erpc::EndpointConfig config;
    config.qp.qpn = kQpn;
    config.qp.qkey = kQkey;
    config.qp.path_mtu_bytes = path_mtu_bytes_;
    config.max_message_bytes = kMessageBytesMax;
    config.selective = random_.chance(kMillion * 7 / 10);
    config.transfers_max = 64;
    config.congestion = congestion_;
    config.sessions_max = plan_.sessions_max;
    config.calls_max = 512;
    config.credits = node.credits;
    config.seed = random_.next();
    config.peer_timeout = peer_timeout_;
    node.endpoint = erpc::Endpoint::create(config, *node.service, *node.sender, *node.pool).value();
    node.endpoint->set_session_callback(
        [](void* context, SessionId id, erpc::SessionEvent event, erpc::RefuseReason) {
            auto& self = *static_cast<ErpcNode*>(context);
            self.world->session_changed(self, id, event);
        },
        &node);
    for (const std::uint8_t type : {kAtOnce, kLater, kNested}) {
        node.endpoint->set_handler(
            type,
            [](void* context, const erpc::Request& request) {
                auto& self = *static_cast<ErpcNode*>(context);
                self.world->execute(self, request);
            },
            &node);
    }
}

// As a killed process: what it had under way is forgotten, and every buffer comes back.
void ErpcWorld::stop(ErpcNode& node) {
    node.wrong_peers += node.endpoint->statistics().of(erpc::Drop::WrongPeer);
    node.bad_icrcs += node.service->drops().of(roce::Drop::BadIcrc);
    node.endpoint.reset();
    node.sender.reset();
    node.service.reset();
    node.sessions.clear();
    node.late.clear();
    node.nested.clear();
    node.nested_requests.clear();
    node.deadlines.clear();
    node.last_serial.clear();
    for (CallRecord& call : calls_) {
        if (call.tag.client == node.index && call.completions == 0) {
            call.abandoned = true;
            node.pool->release(call.response);
        }
    }
    check(node.pool->live() == 0, "an endpoint that ends gives its message buffers back", &node);
    check(node.port->buffers_in_use() == 0, "an endpoint that ends gives its packet buffers back", &node);
}

void ErpcWorld::turn(ErpcNode& node) {
    if (now_ < node.stalled_until || (!receive(node) && wakes_at(node) > now_)) {
        return;
    }
    node.endpoint->on_timeout(now_);
    check_bounds(node);
    answer_late(node);
    if (calling_ && node.is_client && now_ >= node.next_call) {
        node.next_call = now_ + random_.between(microseconds(1), microseconds(400));
        act(node);
    }
    node.sender->flush(now_);
    node.endpoint->check_invariants();
}

// True: something came.
bool ErpcWorld::receive(ErpcNode& node) {
    if (network_.next_arrival(node.index) > now_) {  // as a rule: all nodes have their turn at each event
        return false;
    }
    bool any = false;
    std::array<port::PacketRef, 16> burst;
    for (std::size_t got = burst.size(); got == burst.size();) {
        got = node.port->receive_burst(burst, now_);
        for (const port::PacketRef& packet : std::span(burst).first(got)) {
            node.heard[network_.node_of(packet.path->key().remote)] = now_;
        }
        if (got != 0) {
            any = true;
            node.service->on_packets(std::span(burst).first(got), now_);
            node.endpoint->check_invariants();
        }
    }
    return any;
}

void ErpcWorld::harm(ErpcNode& node) {
    if (now_ >= node.next_stall) {
        node.stalled_until = now_ + random_.between(Duration{}, mix_.node.stall_max);
        node.next_stall = node.stalled_until + random_.between(Duration{}, mix_.node.stall_every * 2);
    }
    if (now_ >= node.next_restart) {
        ++counters_.restarts;
        stop(node);
        start(node);
        node.next_restart = soon(mix_.node.restart_every);
    }
    if (now_ >= node.next_partition) {
        partition(node, true);
        node.next_partition = Instant::never();
        node.partition_ends = now_ + random_.between(Duration{}, mix_.node.partition_max);
    }
    if (now_ >= node.partition_ends) {
        partition(node, false);
        node.partition_ends = Instant::never();
        node.next_partition = soon(mix_.node.partition_every);
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
    const FaultMix whole = mix_.healed();
    network_.set_faults(whole.link, whole.shape);
    for (auto& node : nodes_) {
        node->port->set_faults({});
        node->stalled_until = std::min(node->stalled_until, now_);
        node->next_stall = node->next_restart = node->next_partition = node->partition_ends = Instant::never();
    }
    for (std::size_t from = 0; from < network_.nodes(); ++from) {
        for (std::size_t to = 0; to < network_.nodes(); ++to) {
            network_.link(from, to).set_partitioned(false);
        }
    }
}

// When it has something to do of its own.
Instant ErpcWorld::wakes_at(const ErpcNode& node) const {
    if (node.sender->queued() != 0) {
        return now_;
    }
    Instant wake =
        std::min(node.endpoint->next_deadline(), calling_ && node.is_client ? node.next_call : Instant::never());
    for (const LateAnswer& each : node.late) {
        wake = std::min(wake, each.due);
    }
    return wake;
}

Instant ErpcWorld::next_event() const {
    Instant next = network_.next_arrival();
    for (const auto& node : nodes_) {
        next = std::min({next, std::max(wakes_at(*node), node->stalled_until), node->next_stall, node->next_restart,
                         node->next_partition, node->partition_ends});
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
            turn(*node);
        }
        while (network_.receive(nodes_.size(), now_)) {
        }  // nobody reads what the stranger gets
        now_ = std::min(next_event(), end);
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
    for (const auto& node : nodes_) {
        all.wrong_peers += node->wrong_peers;
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
        "{} frames, {} lost, {} doubled, {} corrupted, {} forged",
        mix_.text(), peer_timeout_.ns, calls_.size(), all.calls_ok, all.deadlines_passed, all.cancelled, all.nested,
        all.peers_lost, all.restarts, totals.offered,
        totals.lost + totals.burst_lost + totals.tail_dropped + totals.partitioned,
        totals.duplicated + totals.late_copies, totals.corrupted, all.forged);
}

}  // namespace cairn::sim
