// Shards of one process that need each other for an answer; each has a worker and a thread.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "fs/channel/client_end.hpp"
#include "fs/daemon/no_port.hpp"
#include "fs/daemon/shard_tenant.hpp"
#include "fs/daemon/stores.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "tests/unit/fs_daemon/clock.hpp"

namespace cairn::fs {
namespace {

using test::clock_now;

constexpr ChannelShape kOneSlot{1, 4096};
constexpr std::uint32_t kShards = 3;

// A shard and the thread that turns its worker.
struct Server {
    Server(NewsBox& news, OpenStores& stores, ShardNumber number)
        : worker(worker::Worker::create(port, {.max_queue_pairs = 1, .max_regions = 1}, clock_now()).value()),
          tenant(*worker, news, *stores.stores[number].store, stores.facts(), number, number + 1U, clock_now()) {}
    void start() {
        thread = std::thread([this] {
            while (!stop) {
                if (!worker->turn(clock_now())) {
                    worker->wait(clock_now(), clock_now() + seconds(10));
                }
            }
        });
    }
    void join() {
        stop = true;
        tenant.wake();
        thread.join();
    }

    NoPort port;
    std::unique_ptr<worker::Worker> worker;
    ShardTenant tenant;
    std::atomic<bool> stop = false;
    std::thread thread;
};

class ShardPeersTest : public testing::Test {
protected:
    ShardPeersTest() {
        StoreWishes wishes;
        wishes.capacity_bytes = 32U << 20U;
        wishes.shards = kShards;
        stores = open_stores(wishes).value();
        std::vector<ShardTenant*> peers;
        for (ShardNumber number = 0; number != kShards; ++number) {
            servers.push_back(std::make_unique<Server>(*news, stores, number));
            peers.push_back(&servers.back()->tenant);
        }
        for (const auto& each : servers) {
            EXPECT_TRUE(each->tenant.set_peers(peers).ok());
        }
        for (const auto& each : servers) {
            each->start();
        }
    }
    // Ends the shards. No shard ends while another one may still send to it.
    ~ShardPeersTest() override {
        for (const auto& each : servers) {
            each->join();
        }
    }
    // Returns the client's end of a new channel to a shard.
    ClientEnd open(ShardNumber shard) {
        servers[shard]->tenant.open_channel(
            {4711, 0, std::make_shared<const Person>(), Segment::create(kOneSlot).value()});
        std::optional<ClientEnd> end;
        while (!end) {
            news->take([&](ShardNews& each) {
                doorbells.push_back(std::move(each.doorbell));
                end.emplace(Segment::map(::dup(each.segment.get()), kOneSlot).value(), doorbells.back().get());
            });
        }
        return std::move(*end);
    }
    template <class Answer>
    std::pair<int, Answer> ask(ClientEnd& end, ShardNumber shard, const Request& request) {
        const std::uint32_t slot = *end.take_slot();
        end.ask(slot, put_request(end.request(slot), {.shard = shard, .sequence = ++sequence}, request));
        while (!end.answer(slot)) {
            end.wait(seconds(1));
        }
        Answer answer{};
        const auto head = parse_answer(*end.answer(slot), answer);
        end.give_back(slot);
        return {head ? head->error : -1, answer};
    }

    OpenStores stores;
    std::unique_ptr<NewsBox> news = NewsBox::create().value();
    std::vector<std::unique_ptr<Server>> servers;
    std::vector<OwnedFd> doorbells;
    std::uint32_t sequence = 0;
};

// Every shard has to say whether a directory is empty.
TEST_F(ShardPeersTest, DirectoriesComeAndGoWithTheHelpOfAll) {
    std::vector<ClientEnd> ends;
    for (ShardNumber shard = 0; shard != kShards; ++shard) {
        ends.push_back(open(shard));
    }
    const ClusterFacts facts = stores.facts();
    const Placement placement(facts.spread, facts.daemons, facts.placement_key);
    const auto owner = [&](const FileId& directory, const std::string& name) {
        return facts.table.owner(placement.slot_of(directory.place, directory.random, name));
    };
    for (int i = 0; i != 12; ++i) {
        const std::string name = "directory " + std::to_string(i);
        const ShardNumber at = owner(kRoot, name);
        const auto [made, directory] =
            ask<WalkAnswer>(ends[at], at, CreateRequest{kRoot, S_IFDIR | 0700, 0, true, name, ""});
        ASSERT_EQ(made, 0);
        const FileId id = directory.attributes.id;
        const ShardNumber below = owner(id, "file");
        ASSERT_EQ((ask<WalkAnswer>(ends[below], below, CreateRequest{id, S_IFREG | 0600, 0, true, "file", ""}).first),
                  0);
        ASSERT_EQ((ask<EmptyAnswer>(ends[at], at, RemoveRequest{kRoot, true, name}).first), ENOTEMPTY);
        ASSERT_EQ((ask<EmptyAnswer>(ends[below], below, RemoveRequest{id, false, "file"}).first), 0);
        ASSERT_EQ((ask<EmptyAnswer>(ends[at], at, RemoveRequest{kRoot, true, name}).first), 0);
    }
}

}  // namespace
}  // namespace cairn::fs
