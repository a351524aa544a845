// A shard on a worker without a network, and clients' ends of its channels.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fs/channel/client_end.hpp"
#include "fs/daemon/no_port.hpp"
#include "fs/daemon/shard_tenant.hpp"
#include "fs/daemon/stores.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "tests/unit/fs_daemon/clock.hpp"

namespace cairn::fs {

constexpr std::uint64_t kClient = 4711;
constexpr ChannelShape kShape{64, 4096};

// The client's end, and the descriptors that came with it.
struct Channel {
    explicit Channel(ShardNews& news)
        : doorbell(std::move(news.doorbell)),
          memory(Segment::map(::dup(news.segment.get()), kShape).value()),
          end(Segment::map(::dup(news.segment.get()), kShape).value(), doorbell.get()) {}
    OwnedFd doorbell;
    Segment memory;
    ClientEnd end;
};

class ShardTenantTest : public testing::Test {
protected:
    ShardTenantTest() {
        StoreWishes wishes;
        wishes.capacity_bytes = 64U << 20U;
        wishes.chunk_bytes = 64U << 10U;
        stores = open_stores(wishes).value();
        worker = worker::Worker::create(port, {.max_queue_pairs = 1, .max_regions = 1}, now).value();
        tenant = std::make_unique<ShardTenant>(*worker, *news, *stores.stores[0].store, stores.facts(), 0, 1, now);
    }

    void turn() {
        now = now + microseconds(10);
        (void)worker->turn(now);
        news->take([this](ShardNews& each) { heard.push_back(std::move(each)); });
    }
    std::unique_ptr<Channel> open(std::uint64_t client = kClient, std::uint32_t number = 0, std::uint32_t uid = 0) {
        const auto person = std::make_shared<const Person>(Person{uid, uid, 1});
        tenant->open_channel({client, number, person, Segment::create(kShape).value()});
        turn();
        const bool was_made = !heard.empty() && heard.back().what == ShardNews::What::ChannelMade;
        EXPECT_TRUE(was_made);
        auto channel = was_made ? std::make_unique<Channel>(heard.back()) : nullptr;
        heard.clear();
        return channel;
    }
    static std::uint32_t ask(Channel& channel, const Request& request) {
        const std::uint32_t slot = *channel.end.take_slot();
        static std::uint32_t sequence = 0;
        channel.end.ask(slot, put_request(channel.end.request(slot), {.sequence = ++sequence}, request));
        return slot;
    }
    template <class Answer>
    static Answer answer(Channel& channel, std::uint32_t slot) {
        const auto bytes = channel.end.answer(slot);
        EXPECT_TRUE(bytes.has_value());
        Answer got{};
        const auto head = parse_answer(bytes.value_or(std::span<const std::uint8_t>{}), got);
        EXPECT_TRUE(head.has_value() && head->error == 0);
        if (bytes) {
            channel.end.give_back(slot);
        }
        return got;
    }
    template <class Answer>
    Answer call(Channel& channel, const Request& request) {
        const std::uint32_t slot = ask(channel, request);
        for (int i = 0; i != 100 && !channel.end.answer(slot); ++i) {
            turn();
        }
        return answer<Answer>(channel, slot);
    }
    // Makes a file that takes several turns to cut. Returns a request that sets its size.
    SetAttributesRequest long_file(Channel& channel) {
        constexpr std::uint32_t kRights = kMayRead | kMayWrite;
        const auto made = call<WalkAnswer>(channel, CreateRequest{kRoot, S_IFREG | 0600, kRights, true, "long", ""});
        SetAttributesRequest size;
        size.file = made.attributes.id;
        size.what = kSetSize;
        for (std::uint64_t chunk = 0; chunk != 700; ++chunk) {
            (void)call<DataAnswer>(channel, WriteRequest{size.file, {kRights, made.proof}, chunk << 16U, 0, 1, 0});
        }
        return size;
    }
    // Returns how often the test got this news of the client.
    [[nodiscard]] long told(ShardNews::What what, std::uint64_t client = kClient) const {
        return std::count_if(heard.begin(), heard.end(), [=](const ShardNews& each) {
            return each.what == what && each.client == client && each.shard == 0;
        });
    }
    [[nodiscard]] std::uint64_t counted(TenantCounter which) const { return tenant->counters().of(which); }

    Instant now = test::clock_now();
    NoPort port;
    OpenStores stores;
    std::unique_ptr<NewsBox> news = NewsBox::create().value();
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<ShardTenant> tenant;
    std::vector<ShardNews> heard;
};

}  // namespace cairn::fs
