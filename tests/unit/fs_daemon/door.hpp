// A fake shard behind the interface that sessions use, driven by the test.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "fs/daemon/shard_door.hpp"

namespace cairn::fs::test {

// A shard whose news comes at once, or when the test lets it.
class Door final : public ShardDoor {
public:
    Door(NewsBox& news, std::uint16_t number) : news_(news), number_(number) {}
    void open_channel(ChannelOrder order) override {
        tell(ShardNews::What::ChannelMade, order.client, order.segment.fd());
        orders.push_back(std::move(order));
    }
    void drain(std::uint64_t client) override {
        drained.push_back(client);
        tell(ShardNews::What::Drained, client);
    }
    void forget(std::uint64_t client) override {
        forgotten.push_back(client);
        tell(ShardNews::What::Forgotten, client);
    }
    void tell(ShardNews::What what, std::uint64_t client, int segment = -1) {
        auto news = std::make_unique<ShardNews>();
        news->what = what;
        news->client = client;
        news->shard = number_;
        if (segment >= 0) {
            news->segment = OwnedFd(::dup(segment));
            news->doorbell = OwnedFd(::dup(segment));
        }
        held.push_back(std::move(news));
        if (!holds) {
            let_go();
        }
    }
    void let_go() {
        for (; !held.empty(); held.pop_front()) {
            news_.tell(std::move(held.front()));
        }
    }

    bool holds = false;
    std::deque<std::unique_ptr<ShardNews>> held;
    std::vector<ChannelOrder> orders;
    std::vector<std::uint64_t> drained;
    std::vector<std::uint64_t> forgotten;

private:
    NewsBox& news_;
    std::uint16_t number_;
};

}  // namespace cairn::fs::test
