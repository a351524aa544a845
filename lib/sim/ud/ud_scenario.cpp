#include "lib/sim/ud/ud_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::sim {

namespace {

constexpr std::uint8_t kEct = 2;  // ECN-capable transport: switches mark it

Family family_of(std::uint64_t seed) {
    return seed % 5 < 3 ? Family::V4 : Family::V6;
}

WorldShape shape_of(std::uint64_t seed) {
    WorldShape shape;
    shape.hosts = 2 + seed % 3;
    shape.guests = 1;
    shape.family = family_of(seed);
    shape.buffers = 256;
    shape.most_bytes = static_cast<std::uint16_t>(UdPlan::from_seed(seed).path_mtu_bytes + roce::rc::kMaxHeaderBytes +
                                                  port::kIcrcBytes);
    shape.engine.max_queue_pairs = 64;
    shape.engine.max_regions = 16;
    shape.engine.held_packets = 16;
    shape.harmful = milliseconds(4);
    shape.healing = milliseconds(120);  // longer than any late copy
    return shape;
}

// Draws as many faults, in a shorter time.
FaultMix mix_of(std::uint64_t seed) {
    return FaultMix::from_seed(seed).within({.stall_every = milliseconds(2),
                                             .stall_max = milliseconds(1),
                                             .restart_every = milliseconds(4),
                                             .partition_every = milliseconds(2),
                                             .partition_max = milliseconds(1)});
}

}  // namespace

UdPlan UdPlan::from_seed(std::uint64_t seed) {
    Random random(seed ^ 0xda7aU);
    UdPlan plan;
    plan.path_mtu_bytes = 256U << random.below(5);
    plan.stranger = 2 + seed % 3;
    plan.loops_groups = random.chance(kMillion / 2);
    plan.small_queues = plan.loops_groups && random.chance(kMillion / 2);
    plan.lazy = random.chance(kMillion / 2);
    plan.bold = random.chance(kMillion / 2);
    return plan;
}

UdWorld::UdWorld(std::uint64_t seed)
    : World(seed, shape_of(seed), mix_of(seed)), users_(*this, UdPlan::from_seed(seed)) {
    add(users_);
}

UdScenario::UdScenario(World& world, const UdPlan& plan)
    : world_(world),
      random_(world.random()),
      plan_(plan),
      stranger_(world.network(), plan.stranger, plan.path_mtu_bytes, world.seed() * 5 + 1),
      // A slow node may have just begun a turn when the first of its links shows a frame.
      to_arrive_(milliseconds(1) + (world.has_slow_node() ? world.mix().node.turn_max * 2 : Duration{})) {
    for (std::size_t i = 0; i < world.hosts(); ++i) {
        peers_.push_back(world.network().address_of(i));
    }
    for (std::uint8_t i = 0; i < kGroups; ++i) {
        peers_.push_back(groups_[i] = world.network().group_address(static_cast<std::uint8_t>(i + 1)));
    }
    for (std::size_t i = 0; i < world.hosts(); ++i) {
        const auto workers = world.workers_of(i);
        Node& seat = *workers[workers.size() == 1 ? 0 : random_.below(workers.size())];
        UdHost& host = *hosts_.emplace_back(std::make_unique<UdHost>(seat, plan.path_mtu_bytes, random_));
        host.traffic_class = random_.chance(kMillion / 2) ? kEct : 0;
        host.node.port().set_loops_groups(plan.loops_groups);
        host.node.port().set_traffic_class(host.traffic_class);
    }
}

void UdScenario::start(Node& node) {
    UdHost& host = *hosts_[node.host()];
    host.start(peers_);
    for (std::uint64_t queues = random_.between(1, 2); queues > 0; --queues) {
        make_queues(host);
    }
    for (std::uint64_t users = random_.between(1, 3); users > 0; --users) {
        make_user(host);
    }
}

void UdScenario::stop(Node& node) {
    UdHost& host = *hosts_[node.host()];
    while (!host.users.empty()) {
        end_user(host, *host.users.back());
    }
    host.stop();
}

void UdScenario::on_delivery(std::size_t to, const Frame& frame) {
    if (to < hosts_.size()) {
        ++hosts_[to]->arrived;
    }
    if (!world_.healed() && random_.chance(world_.mix().forge_per_million)) {
        forge_from(frame);
    }
}

void UdScenario::forge_from(const Frame& frame) {
    const std::optional<UdMessage> seen = message_of(frame);
    if (!plan_.alone && (!seen || !is_own(*seen))) {
        return;  // other scenarios could not tell a forged message from a true one: theirs carry no proof
    }
    const std::optional<Frame> made = stranger_.forge_from(frame);
    if (!made) {
        return;
    }
    ++counters_.forged;
    if (const std::optional<UdMessage> message = message_of(*made)) {
        ++sent_[*message].times;  // a receiver may accept it
    }
    world_.network().send(stranger_.node(), *made, world_.now());
}

void UdScenario::before_turn(Node& node) {
    begin_account(*hosts_[node.host()]);
}

// Takes in delivered datagrams.
void UdScenario::act(Node& node) {
    UdHost& host = *hosts_[node.host()];
    heed_events(host, true);
    reset_one_unseen(host);
    take_receives(host);
    settle_account(host);
    if (world_.now() >= host.acts_at) {
        host.acts_at = world_.now() + random_.between(microseconds(1), microseconds(60));
        act(host);
    }
    begin_account(host);
}

void UdScenario::on_sent(Node& node) {
    UdHost& host = *hosts_[node.host()];
    heed_events(host, false);
    take_sends(host);
    take_receives(host);
    settle_account(host);
}

void UdScenario::after_turn(Node& node) {
    check_states(*hosts_[node.host()]);
}

void UdScenario::on_heal() {
    for (const auto& host : hosts_) {
        host->acts_at = Instant::never();
    }
}

std::string UdScenario::text() const {
    return fmt::format(
        "path MTU {}, groups {}; {} messages posted, {} delivered, {} of them to groups, {} forged, {} overruns",
        plan_.path_mtu_bytes, plan_.loops_groups ? "looped by the port" : "looped by the service", counters_.posted,
        counters_.delivered, counters_.delivered_to_groups, counters_.forged, counters_.overruns);
}

}  // namespace cairn::sim
