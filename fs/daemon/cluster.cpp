#include "fs/daemon/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::fs {

namespace {

Result<std::vector<net::IpAddress>> parse_nodes(const std::vector<std::string>& nodes) {
    std::vector<net::IpAddress> parsed;
    for (const std::string& text : nodes) {
        const Result<net::IpAddress> address = net::IpAddress::parse(text);
        if (!address.ok() || !address.value().is_station()) {
            return Error{fmt::format("'{}' among the nodes is no address of a host", text),
                         "name each daemon by the address of its --port"};
        }
        if (std::ranges::find(parsed, address.value()) != parsed.end()) {
            return Error{fmt::format("{} is twice among the nodes", text), "name each daemon once"};
        }
        parsed.push_back(address.value());
    }
    return parsed;
}

}  // namespace

Result<Cluster> make_cluster(const std::vector<std::string>& nodes, std::optional<std::uint32_t> node,
                             const std::string& own, std::uint32_t local_shards) {
    const Result<std::vector<net::IpAddress>> parsed = parse_nodes(nodes);
    if (!parsed.ok()) {
        return parsed.error();
    }
    Cluster cluster{parsed.value(), 0, static_cast<std::uint16_t>(local_shards)};
    if (nodes.size() * local_shards > kSlots) {
        return Error{
            fmt::format("{} nodes of {} shards are more than a file system has slots", nodes.size(), local_shards),
            fmt::format("have at most {} shards", kSlots)};
    }
    if (node && *node >= cluster.node_count()) {
        return Error{fmt::format("--node {} is none of {} nodes", *node, cluster.node_count()),
                     "they count from 0, as they stand in --nodes"};
    }
    if (nodes.empty()) {
        return cluster;
    }
    const Result<net::IpAddress> address = net::IpAddress::parse(own);
    const auto found = address.ok() ? std::ranges::find(cluster.nodes, address.value()) : cluster.nodes.end();
    if (found == cluster.nodes.end() && !node) {
        return Error{fmt::format("this daemon's address '{}' is none of the nodes'", own),
                     "name it in --nodes as in --port, or say --node"};
    }
    const auto place = static_cast<std::uint16_t>(found - cluster.nodes.begin());
    if (node && found != cluster.nodes.end() && *node != place) {
        return Error{
            fmt::format("--node {} is {}, and this daemon's address is {}", *node, cluster.nodes[*node].text(), own),
            "leave --node out"};
    }
    cluster.node = node ? static_cast<std::uint16_t>(*node) : place;
    return cluster;
}

}  // namespace cairn::fs
