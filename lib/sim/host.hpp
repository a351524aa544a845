// Host: the workers of one address and one process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/sim/node.hpp"

namespace cairn::sim {

class Host {
public:
    explicit Host(World& world) : world_(world) {}

    void add(std::unique_ptr<Node> worker) { workers_.push_back(std::move(worker)); }
    [[nodiscard]] std::span<const std::unique_ptr<Node>> workers() const noexcept { return workers_; }

    // Starts or stops the host's process: all its workers, one after the other.
    void start(std::uint64_t process);
    void stop(bool is_killed);
    // Gives turns to the workers that are awake and have something to do, in an order that the seed chooses.
    void turn();

private:
    World& world_;
    std::vector<std::unique_ptr<Node>> workers_;
    std::vector<Node*> busy_;
};

}  // namespace cairn::sim
