// Nodes that come and go, and their messages to the operator.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/fs_daemon/node.hpp"

namespace cairn::fs::test {

class NodesTest : public testing::Test {
protected:
    NodesTest() { said().clear(); }
    static std::vector<std::string>& said() {
        static std::vector<std::string> lines;
        return lines;
    }
    static bool was_said(const std::string& words) {
        return std::ranges::any_of(said(), [&](const auto& each) { return each.find(words) != std::string::npos; });
    }
    // Makes a node that reports to the operator.
    std::unique_ptr<Node> node(ShardNumber number, const SipKey& key = kNodesKey, std::uint32_t chunk_bytes = 1U << 20U,
                               std::uint64_t life = 0) {
        PeerLinkConfig config = links_of(number);
        config.cluster_key = key;
        config.facts.chunk_bytes = chunk_bytes;
        config.facts.life += life;
        config.say = [](const std::string& line) { said().push_back(line); };
        auto made = std::make_unique<Node>(config);
        wire.add(*made);
        return made;
    }
    void kill(std::unique_ptr<Node>& node) {
        wire.remove(*node);
        node.reset();
    }

    Wire wire;
};

}  // namespace cairn::fs::test
