#include "tests/sim/ud_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::sim {

namespace {

constexpr Duration kHarmful = milliseconds(4);
constexpr Duration kSettling = milliseconds(120);  // longer than any late copy
constexpr std::uint8_t kEct = 2;                   // ECN-capable transport: switches mark it

Family family_of(std::uint64_t seed) {
    return seed % 5 < 3 ? Family::V4 : Family::V6;
}

net::IpAddress group_of(Family family, std::uint8_t number) {
    if (family == Family::V4) {
        return net::IpAddress::from_v4(0xef010200U + number);
    }
    return net::IpAddress::from_v6({0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number});
}

}  // namespace

// The last place in the network is the stranger's.
UdWorld::UdWorld(std::uint64_t seed)
    : seed_(seed),
      random_(seed),
      path_mtu_bytes_(256U << random_.below(5)),
      mix_(FaultMix::from_seed(seed)),
      network_(3 + seed % 3, seed * 3 + 1, family_of(seed)),
      stranger_(network_, 2 + seed % 3, path_mtu_bytes_, seed * 5 + 1),
      loops_groups_(random_.chance(kMillion / 2)),
      small_queues_(loops_groups_ && random_.chance(kMillion / 2)),
      lazy_(random_.chance(kMillion / 2)),
      bold_(random_.chance(kMillion / 2)) {
    mix_.node.stall_max = std::min(mix_.node.stall_max, milliseconds(1));
    mix_.node.stall_every = std::min(mix_.node.stall_every, milliseconds(2));
    mix_.node.restart_every = std::min(mix_.node.restart_every, milliseconds(4));
    mix_.node.partition_every = std::min(mix_.node.partition_every, milliseconds(2));
    mix_.node.partition_max = std::min(mix_.node.partition_max, milliseconds(1));
    network_.set_faults(mix_.link, mix_.shape);
    network_.set_tap([this](std::size_t to, const Frame& frame) {
        if (to < hosts_.size()) {
            ++hosts_[to]->arrived;
        }
        if (!healed_ && random_.chance(mix_.forge_per_million)) {
            forge_from(frame);
        }
    });
    for (std::size_t i = 0; i < network_.nodes() - 1; ++i) {
        peers_.push_back(network_.address_of(i));
    }
    for (std::uint8_t i = 0; i < kGroups; ++i) {
        peers_.push_back(groups_[i] = group_of(family_of(seed), static_cast<std::uint8_t>(i + 1)));
    }
    for (std::size_t i = 0; i < network_.nodes() - 1; ++i) {
        UdHost& host = *hosts_.emplace_back(std::make_unique<UdHost>(network_, i, path_mtu_bytes_, random_));
        host.port.set_faults(mix_.port);
        host.port.set_loops_groups(loops_groups_);
        host.traffic_class = random_.chance(kMillion / 2) ? kEct : 0;
        host.port.set_traffic_class(host.traffic_class);
        host.port.set_witness([this, &host](const Frame& frame, bool icrc_ok) { on_frame(host, frame, icrc_ok); });
        host.next_stall = soon(mix_.node.stall_every);
        host.next_restart = soon(mix_.node.restart_every);
        host.next_partition = soon(mix_.node.partition_every);
        start(host);
    }
}

Instant UdWorld::soon(Duration every) {
    return every.ns == 0 ? Instant::never() : now_ + random_.between(Duration{}, every * 2);
}

// A new process may have the queue pair numbers of the last: only the Q_Keys tell its datagrams from theirs.
void UdWorld::start(UdHost& host) {
    roce::EngineConfig config;
    config.max_queue_pairs = 64;
    config.max_regions = 16;
    config.held_packets = 16;
    config.seed = {seed_ + host.index, random_.below(2)};
    host.start(config, now_, peers_);
    host.actor = std::make_unique<Actor>(
        *host.worker, [this, &host] { on_arrived(host); }, [this, &host] { on_sent(host); });
    for (std::uint64_t queues = random_.between(1, 2); queues > 0; --queues) {
        make_queues(host);
    }
    for (std::uint64_t users = random_.between(1, 3); users > 0; --users) {
        make_user(host);
    }
}

void UdWorld::stop(UdHost& host) {
    while (!host.users.empty()) {
        end_user(host, *host.users.back());
    }
    counters_.drops += host.worker->datagrams().drops().snapshot();
    counters_.drops += host.worker->engine().drops().snapshot();
    host.stop();
    expect(host.port.buffers_in_use() == 0, "a process that ends keeps packet buffers");
}

void UdWorld::harm(UdHost& host) {
    if (now_ >= host.next_stall) {
        host.stalled_until = now_ + random_.between(Duration{}, mix_.node.stall_max);
        host.next_stall = host.stalled_until + random_.between(Duration{}, mix_.node.stall_every * 2);
    }
    if (now_ >= host.next_restart) {
        ++counters_.restarts;
        stop(host);
        start(host);
        host.next_restart = soon(mix_.node.restart_every);
    }
    if (now_ >= host.next_partition) {
        partition(host, true);
        host.next_partition = Instant::never();
        host.partition_ends = now_ + random_.between(Duration{}, mix_.node.partition_max);
    }
    if (now_ >= host.partition_ends) {
        partition(host, false);
        host.partition_ends = Instant::never();
        host.next_partition = soon(mix_.node.partition_every);
    }
}

// Between this host and the next: in both directions, or in one.
void UdWorld::partition(UdHost& host, bool apart) {
    const std::size_t other = (host.index + 1) % hosts_.size();
    network_.link(host.index, other).set_partitioned(apart);
    network_.link(other, host.index).set_partitioned(apart && host.index % 2 == 0);
}

void UdWorld::heal() {
    healed_ = true;
    const FaultMix whole = mix_.healed();
    network_.set_faults(whole.link, whole.shape);
    for (const auto& host : hosts_) {
        host->port.set_faults({});
        host->stalled_until = now_;
        host->acts_at = Instant::never();
        host->next_stall = host->next_restart = host->next_partition = host->partition_ends = Instant::never();
        partition(*host, false);
    }
}

void UdWorld::forge_from(const Frame& frame) {
    const std::optional<Frame> made = stranger_.forge_from(frame);
    if (!made) {
        return;
    }
    ++counters_.forged;
    if (const std::optional<UdMessage> message = message_of(*made)) {
        ++sent_[*message].times;  // whoever gets it may believe it
    }
    network_.send(stranger_.node(), *made, now_);
}

void UdWorld::turn(UdHost& host) {
    const bool arrived = network_.next_arrival(host.index) <= now_;
    const bool acts = now_ >= host.acts_at;
    if (now_ < host.stalled_until || (!arrived && !acts && host.worker->next_deadline() > now_)) {
        return;
    }
    begin_account(host);
    host.worker->turn(now_);
    check_states(host);
}

void UdWorld::on_arrived(UdHost& host) {
    heed_events(host, true);
    reset_one_unseen(host);
    take_receives(host);
    settle_account(host);
    if (now_ >= host.acts_at) {
        host.acts_at = now_ + random_.between(microseconds(1), microseconds(60));
        act(host);
    }
    begin_account(host);
}

void UdWorld::on_sent(UdHost& host) {
    heed_events(host, false);
    take_sends(host);
    take_receives(host);
    settle_account(host);
}

Instant UdWorld::next_event() const {
    Instant next = network_.next_arrival();
    for (const auto& host : hosts_) {
        const Instant own = std::min(host->acts_at, host->worker->next_deadline());
        next = std::min({next, std::max(own, host->stalled_until), host->next_stall, host->next_restart,
                         host->next_partition, host->partition_ends});
    }
    return std::max(next, now_ + microseconds(1));
}

void UdWorld::run_until(Instant end) {
    while (now_ < end && !broken_) {
        for (const auto& host : hosts_) {
            if (!healed_) {
                harm(*host);
            }
            turn(*host);
        }
        while (network_.receive(stranger_.node(), now_)) {
        }
        now_ = std::min(next_event(), end);
    }
}

std::optional<std::string> UdWorld::run() {
    run_until(Instant{} + kHarmful);
    heal();
    run_until(now_ + kSettling);
    send_anew();
    check_end();
    return broken_;
}

std::string UdWorld::text() const {
    return fmt::format(
        "{} hosts, path MTU {}, groups {}; {} messages posted, {} delivered, {} of them to groups; {} frames, {} "
        "forged, {} restarts, {} overruns; {}",
        hosts_.size(), path_mtu_bytes_, loops_groups_ ? "looped by the port" : "looped by the service",
        counters_.posted, counters_.delivered, counters_.delivered_to_groups, network_.totals().offered,
        counters_.forged, counters_.restarts, counters_.overruns, mix_.text());
}

}  // namespace cairn::sim
