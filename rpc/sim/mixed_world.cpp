#include "rpc/sim/mixed_world.hpp"

#include <algorithm>

namespace cairn::sim {

namespace {

// Returns as many faults as elsewhere, in a shorter time: datagrams leave all the time.
FaultMix mix_of(std::uint64_t seed) {
    return FaultMix::from_seed(seed).within({.late_copy_most = milliseconds(4),
                                             .stall_every = milliseconds(3),
                                             .stall_max = milliseconds(1),
                                             .restart_every = milliseconds(8),
                                             .partition_every = milliseconds(4),
                                             .partition_max = milliseconds(2)});
}

WorldShape shape_of(std::uint64_t seed, const MixedPlan& plan) {
    WorldShape shape;
    shape.hosts = plan.erpc.clients + plan.erpc.servers;
    shape.workers = WorldShape::workers_from_seed(seed, shape.hosts, 6);
    shape.guests = plan.erpc.guests + (plan.has_erpc ? ErpcScenario::kGuests : 0);
    shape.family = plan.erpc.family;
    shape.most_bytes =
        static_cast<std::uint16_t>(plan.erpc.path_mtu_bytes + roce::rc::kMaxHeaderBytes + port::kIcrcBytes);
    shape.paths = 256;  // more than a burst: eRPC's hostile peers have one for each of their many UDP ports
    shape.engine.max_queue_pairs = 96;
    shape.engine.max_regions = 160;
    shape.engine.held_packets = 64;
    shape.harmful = milliseconds(10);
    shape.healing = plan.erpc.healing;
    return shape;
}

// Adds users. Hostile peers that hold places are in worlds of their own.
void join(LinkedPlan& users, const MixedPlan& plan) {
    users.path_mtu_bytes = plan.erpc.path_mtu_bytes;
    users.has_strangers = false;
    users.alone = false;
}

// Adds users over connections. copyrpc and ScaleRPC use the other scenarios' connection manager, if there is one.
// Otherwise a worker has one manager for both.
void add_linked(std::uint64_t seed, MixedPlan& plan) {
    plan.has_copyrpc = Random(seed ^ 0xc0b1U).chance(kMillion / 2);
    plan.copyrpc = CopyrpcPlan::from_seed(seed);
    join(plan.copyrpc.users, plan);
    plan.has_scalerpc = Random(seed ^ 0x5cb2U).chance(kMillion / 2) && (plan.has_connections || !plan.has_copyrpc);
    plan.scalerpc = ScalerpcPlan::from_seed(seed);
    join(plan.scalerpc.users, plan);
    const bool has_guests = plan.has_copyrpc || plan.has_scalerpc;
    plan.connections.moody = plan.connections.moody && !has_guests;  // otherwise it would end all users' connections
    plan.connections.has_guests = has_guests;
}

}  // namespace

MixedPlan MixedPlan::from_seed(std::uint64_t seed) {
    Random random(seed ^ 0x313edU);
    MixedPlan plan;
    const std::uint64_t missing = random.below(4);
    plan.has_erpc = missing != 0;
    plan.has_datagrams = missing != 1;
    plan.has_connections = missing != 2;
    plan.erpc = WorldPlan::small_of_seed(seed);
    plan.erpc.clients = random.between(1, 2);
    plan.erpc.servers = random.between(1, 2);
    plan.erpc.guests = (plan.has_datagrams ? 1U : 0U) + (plan.has_connections ? 1U : 0U);
    plan.erpc.alone = false;
    plan.erpc.qpn = Qpn{static_cast<std::uint32_t>(0x100 + random.below(3))};
    plan.datagrams = UdPlan::from_seed(seed);
    plan.datagrams.path_mtu_bytes = plan.erpc.path_mtu_bytes;
    plan.datagrams.stranger = plan.erpc.clients + plan.erpc.servers;
    plan.datagrams.alone = false;
    plan.connections = VerbsPlan::quick_from_seed(seed);
    plan.connections.path_mtu_bytes = plan.erpc.path_mtu_bytes;
    plan.connections.alone = false;
    plan.connections.stranger = plan.datagrams.stranger + (plan.has_datagrams ? 1 : 0);
    add_linked(seed, plan);
    plan.shape = shape_of(seed, plan);
    plan.mix = mix_of(seed);
    return plan;
}

MixedWorld::MixedWorld(std::uint64_t seed, const MixedPlan& plan) : World(seed, plan.shape, plan.mix) {
    if (plan.has_datagrams) {
        add(datagrams_.emplace(*this, plan.datagrams));
    }
    if (plan.has_connections) {
        add(connections_.emplace(*this, plan.connections));
    }
    if (plan.has_copyrpc) {
        add(copyrpc_.emplace(*this, plan.copyrpc, connections_ ? &*connections_ : nullptr).scenario());
    }
    if (plan.has_scalerpc) {
        add(scalerpc_.emplace(*this, plan.scalerpc, connections_ ? &*connections_ : nullptr).scenario());
    }
    if (plan.has_erpc) {
        add(erpc_.emplace(*this, plan.erpc));
    }
}

std::size_t MixedWorld::hosts_apart() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes() && erpc_ && datagrams_; ++i) {
        count += erpc_->lives_on(node(i)) && !datagrams_->lives_on(node(i)) ? 1U : 0U;
    }
    return count;
}

std::uint64_t MixedWorld::acts() const {
    return (erpc_ ? erpc_->counters().calls : 0) + (datagrams_ ? datagrams_->counters().posted : 0) +
           (connections_ ? connections_->counters().requests : 0) + (copyrpc_ ? copyrpc_->counters().calls : 0) +
           (scalerpc_ ? scalerpc_->counters().calls : 0);
}

}  // namespace cairn::sim
