#include "lib/sim/node.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "lib/sim/world.hpp"

namespace cairn::sim {

namespace {

constexpr std::array<Duration, 4> kJumps{microseconds(50), milliseconds(5), milliseconds(300), seconds(10)};

}  // namespace

Node::Node(World& world, std::size_t index, std::size_t host, std::uint16_t number, std::uint64_t seed)
    : world_(world),
      index_(index),
      host_(host),
      number_(number),
      port_(world.network(), host, world.shape().buffers, seed, world.shape().paths,
            static_cast<std::uint8_t>(number)) {
    port_.set_faults(world.mix().port);
    port_.set_most_bytes(world.shape().most_bytes);
    port_.set_witness([this](const Frame& frame, bool icrc_ok) {
        for (Scenario* const each : scenarios_) {
            each->on_frame(*this, frame, icrc_ok);
        }
    });
    const NodeFaults& faults = world.mix().node;
    counter_ahead_ = world.random().between(Duration{}, seconds(3600));
    harm_.stall = world.soon(faults.stall_every);
    harm_.restart = number == 0 ? world.soon(faults.restart_every) : Instant::never();
    harm_.jump = world.soon(faults.clock_jump_every);
    harm_.partition = number == 0 ? world.soon(faults.partition_every) : Instant::never();
}

Instant Node::read_clock() {
    now_ = time_.on_reading(world_.now() + counter_ahead_);
    clock_ahead_ = now_ - world_.now();
    port_.set_clock_ahead(clock_ahead_);
    return now_;
}

void Node::jump() {
    Random& random = world_.random();
    const Duration far = random.between(Duration{}, kJumps[random.below(kJumps.size())]);
    counter_ahead_ = random.chance(kMillion / 2) ? counter_ahead_ + far : counter_ahead_ - far;
}

void Node::start(std::uint64_t process) {
    process_ = process;
    time_ = {};
    woken_ = false;
    read_clock();
    roce::EngineConfig config = world_.shape().engine;
    // A new process may draw the names of the last one again.
    config.seed = {world_.seed() + index_, world_.random().below(2)};
    config.owner = number_;
    config.owner_bits = port::QpnOwners(static_cast<std::uint32_t>(world_.workers_of(host_).size())).bits();
    worker_ = worker::Worker::create(port_, config, now_).value();
    scenarios_.clear();
    std::copy_if(world_.scenarios().begin(), world_.scenarios().end(), std::back_inserter(scenarios_),
                 [this](const Scenario* each) { return each->lives_on(*this); });
    for (Scenario* const each : scenarios_) {
        each->start(*this);
    }
    actor_.emplace(
        *worker_,
        [this] {
            for (Scenario* const each : scenarios_) {
                each->act(*this);
            }
        },
        [this] {
            for (Scenario* const each : scenarios_) {
                each->on_sent(*this);
            }
        });
}

void Node::stop(bool is_killed) {
    if (is_killed) {
        port_.set_faults({.tx_full_per_million = kMillion});
    }
    read_clock();
    std::for_each(scenarios_.rbegin(), scenarios_.rend(), [this](Scenario* each) { each->stop(*this); });
    drops_ += live_drops();
    unsent_ += worker_->sender().queued() + worker_->sender().drops().total();
    clock_went_back_ += time_.went_back();
    clock_leapt_ += time_.leapt();
    actor_.reset();
    worker_.reset();
    port_.set_faults(world_.healed() ? PortFaults{} : world_.mix().port);
    world_.check(port_.buffers_in_use() == 0, "a process that ends gives its packet buffers back", this);
}

telemetry::CounterSnapshot<roce::Drop> Node::live_drops() const {
    telemetry::CounterSnapshot<roce::Drop> sum = worker_->datagrams().drops().snapshot();
    sum += worker_->engine().drops().snapshot();
    sum.values[static_cast<std::size_t>(roce::Drop::UnknownQpn)] += worker_->engine().wire_drops().snapshot().total();
    return sum;
}

Instant Node::wakes_at() const {
    if (woken_) {
        return world_.now();
    }
    const Instant deadline = worker_->next_deadline();
    Instant wake = deadline == Instant::never() ? deadline : deadline - clock_ahead_;
    wake = std::min(wake, world_.network().next_arrival(host_, number_));
    for (const Scenario* const each : scenarios_) {
        wake = std::min(wake, each->next_act(*this));
    }
    return wake;
}

Instant Node::next_event() const {
    return std::min({std::max(wakes_at(), stalled_until_), harm_.stall, harm_.restart, harm_.jump, harm_.partition,
                     harm_.partition_ends});
}

// Begins turns for all packets that have come. The time that a slow node takes is its users', not its turns'.
bool Node::begin_turns() {
    if (world_.now() < stalled_until_ || wakes_at() > world_.now()) {
        return false;
    }
    read_clock();
    woken_ = false;
    return true;
}

bool Node::turn() {
    for (Scenario* const each : scenarios_) {
        each->before_turn(*this);
    }
    const bool worked = worker_->turn(now_);
    for (Scenario* const each : scenarios_) {
        each->after_turn(*this);
    }
    return worked;
}

void Node::end_turns() {
    if (index_ == world_.slow_node()) {
        stalled_until_ = world_.now() + world_.random().between(milliseconds(1), world_.mix().node.turn_max);
    }
}

void Node::harm() {
    const NodeFaults& faults = world_.mix().node;
    const Instant now = world_.now();
    if (now >= harm_.stall) {
        stalled_until_ = now + world_.random().between(Duration{}, faults.stall_max);
        harm_.stall = stalled_until_ + world_.random().between(Duration{}, faults.stall_every * 2);
    }
    if (now >= harm_.jump) {
        jump();
        harm_.jump = world_.soon(faults.clock_jump_every);
    }
    if (now >= harm_.restart) {
        world_.restart(host_);
        harm_.restart = world_.soon(faults.restart_every);
    }
    if (now >= harm_.partition) {
        partition(true);
        harm_.partition = Instant::never();
        harm_.partition_ends = now + world_.random().between(Duration{}, faults.partition_max);
        for (Scenario* const each : world_.scenarios()) {
            each->on_partition(*this, (host_ + 1) % world_.hosts());
        }
    }
    if (now >= harm_.partition_ends) {
        partition(false);
        harm_.partition_ends = Instant::never();
        harm_.partition = world_.soon(faults.partition_every);
    }
}

// Parts or joins this host and the next, in both directions or in one.
void Node::partition(bool apart) {
    const std::size_t other = (host_ + 1) % world_.hosts();
    world_.network().link(host_, other).set_partitioned(apart);
    world_.network().link(other, host_).set_partitioned(apart && host_ % 2 == 0);
}

void Node::heal() {
    port_.set_faults({});
    stalled_until_ = std::min(stalled_until_, world_.now());
    harm_ = {};
    read_clock();
}

}  // namespace cairn::sim
