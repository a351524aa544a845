// Cluster: the shards of a file system, and their machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/placement/slot_table.hpp"
#include "lib/base/result.hpp"
#include "lib/net/address.hpp"

namespace cairn::fs {

// A node is a machine with one daemon, which has `local_shards` shards. The numbers of the nodes' shards interleave, so
// neighbouring chunks lie on different machines.
struct Cluster {
    std::vector<net::IpAddress> nodes{};  // in the order that all daemons share; empty if this daemon is alone
    std::uint16_t node = 0;               // this daemon's
    std::uint16_t local_shards = 1;

    [[nodiscard]] std::uint32_t node_count() const noexcept {
        return nodes.empty() ? 1 : static_cast<std::uint32_t>(nodes.size());
    }
    [[nodiscard]] bool is_alone() const noexcept { return node_count() == 1; }
    [[nodiscard]] std::uint32_t shards() const noexcept { return node_count() * local_shards; }
    [[nodiscard]] ShardNumber number_of(std::uint32_t local) const noexcept {
        return static_cast<ShardNumber>(local * node_count() + node);
    }
    [[nodiscard]] std::uint32_t node_of(ShardNumber shard) const noexcept { return shard % node_count(); }
    [[nodiscard]] std::uint32_t local_of(ShardNumber shard) const noexcept { return shard / node_count(); }
    [[nodiscard]] bool is_remote(ShardNumber shard) const noexcept {
        return shard < shards() && node_of(shard) != node;
    }
};

// Returns the cluster of these nodes. This node is number `node`, or has the address `own`. Errors: an invalid address;
// an address that comes twice; no such node; more shards than slots.
Result<Cluster> make_cluster(const std::vector<std::string>& nodes, std::optional<std::uint32_t> node,
                             const std::string& own, std::uint32_t local_shards);

}  // namespace cairn::fs
