#include "lib/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cairn::sim {

NodeTotals& NodeTotals::operator+=(const NodeTotals& other) noexcept {
    for (const auto field : {&NodeTotals::restarts, &NodeTotals::refused, &NodeTotals::starved, &NodeTotals::unheard,
                             &NodeTotals::clock_went_back, &NodeTotals::clock_leapt}) {
        this->*field += other.*field;
    }
    drops += other.drops;
    return *this;
}

std::vector<std::uint16_t> WorldShape::workers_from_seed(std::uint64_t seed, std::size_t hosts, std::size_t most) {
    constexpr std::size_t kMost = 3;
    Random random(seed ^ 0x3a11U);
    std::vector<std::uint16_t> workers;
    for (std::size_t left = hosts; left > 0; --left) {
        workers.push_back(static_cast<std::uint16_t>(random.between(1, std::min(kMost, most - (left - 1)))));
        most -= workers.back();
    }
    return workers;
}

namespace {

WorldShape with_workers(WorldShape shape) {
    if (shape.workers.empty()) {
        shape.workers.assign(shape.hosts, 1);
    }
    return shape;
}

}  // namespace

World::World(std::uint64_t seed, const WorldShape& shape, const FaultMix& mix)
    : seed_(seed),
      shape_(with_workers(shape)),
      mix_(mix),
      random_(seed),
      network_(shape.hosts + shape.guests, seed * 3 + 1, shape.family) {
    if (mix.node.turn_max.ns != 0) {
        slow_ = random_.below(std::accumulate(shape_.workers.begin(), shape_.workers.end(), std::size_t{0}));
    }
    network_.set_faults(mix.link, mix.shape);
    network_.set_tap([this](std::size_t to, const Frame& frame) {
        for (Scenario* const each : scenarios_) {
            each->on_delivery(to, frame);
        }
    });
    for (std::size_t host = 0; host < hosts(); ++host) {
        network_.set_queues(host, shape_.workers[host]);
        hosts_.emplace_back(*this);
        for (std::uint16_t number = 0; number < shape_.workers[host]; ++number) {
            auto node = std::make_unique<Node>(*this, nodes_.size(), host, number, random_.next());
            nodes_.push_back(node.get());
            hosts_.back().add(std::move(node));
        }
    }
}

Instant World::soon(Duration every) {
    return every.ns == 0 ? Instant::never() : now_ + random_.between(Duration{}, every * 2);
}

void World::check(bool holds, std::string_view promise, const Node* node) {
    if (!holds && !broken_) {
        broken_ = node != nullptr ? fmt::format("at {} ns, node {}: {}", now_.ns, node->index(), promise)
                                  : fmt::format("at {} ns: {}", now_.ns, promise);
    }
}

void World::restart(std::size_t index) {
    Host& host = hosts_[index];
    ++restarts_;
    host.stop(random_.chance(kMillion / 2));
    host.start(++processes_);
}

void World::step() {
    network_.advance(now_);
    for (Node* const node : nodes_) {
        if (!healed_) {
            node->harm();
        }
    }
    for (Scenario* const each : scenarios_) {
        each->on_step();
    }
    for (Host& host : hosts_) {
        host.turn();
    }
    receive_for_guests();
}

void World::receive_for_guests() {
    for (std::size_t place = hosts(); place < network_.nodes(); ++place) {
        while (const std::optional<Frame> frame = network_.receive(place, now_)) {
            for (Scenario* const each : scenarios_) {
                each->on_guests_frame(place, *frame);
            }
        }
    }
}

Instant World::next_event() const {
    Instant next = Instant::never();
    for (std::size_t place = 0; place < network_.nodes(); ++place) {
        if (place >= hosts() || network_.has_queues(place)) {  // other hosts' ports look at their links themselves
            next = std::min(next, network_.next_arrival(place));
        }
    }
    for (Node* const node : nodes_) {
        next = std::min(next, node->next_event());
    }
    for (const Scenario* const each : scenarios_) {
        next = std::min(next, each->next_step());
    }
    return std::max(next, now_ + microseconds(1));
}

void World::run_until(Instant end) {
    while (now_ < end && !broken_) {
        step();
        now_ = std::min(next_event(), end);
    }
}

void World::heal() {
    healed_ = true;
    const FaultMix whole = mix_.healed();
    network_.set_faults(whole.link, whole.shape);
    for (std::size_t from = 0; from < network_.nodes(); ++from) {
        for (std::size_t to = 0; to < network_.nodes(); ++to) {
            network_.link(from, to).set_partitioned(false);
        }
    }
    for (Node* const node : nodes_) {
        node->heal();
    }
    for (Scenario* const each : scenarios_) {
        each->on_heal();
    }
}

std::optional<std::string> World::run() {
    for (Host& host : hosts_) {
        host.start(++processes_);
    }
    run_until(now_ + shape_.harmful);
    heal();
    run_until(now_ + shape_.healing);
    for (Scenario* const each : scenarios_) {
        each->check_progress();
    }
    for (Scenario* const each : scenarios_) {
        each->wind_up();
    }
    for (Host& host : hosts_) {
        host.stop(random_.chance(kMillion / 2));
    }
    for (Scenario* const each : scenarios_) {
        each->check_end();
    }
    return broken_;
}

NodeTotals World::node_totals() const {
    NodeTotals sum;
    sum.restarts = restarts_;
    for (Node* const node : nodes_) {
        sum += {0,
                node->port().counters().refused,
                node->port().counters().starved,
                node->port().counters().unheard,
                node->clock_went_back(),
                node->clock_leapt(),
                node->drops()};
    }
    return sum;
}

std::string World::text() const {
    const LinkCounters totals = network_.totals();
    std::string all = mix_.text();
    for (const Scenario* const each : scenarios_) {
        all += "; " + each->text();
    }
    return all + fmt::format("; {} frames, {} lost, {} doubled, {} corrupted, {} restarts", totals.offered,
                             totals.lost + totals.burst_lost + totals.tail_dropped + totals.partitioned,
                             totals.duplicated + totals.late_copies, totals.corrupted, restarts_);
}

}  // namespace cairn::sim
