// A client's and a shard's end of one channel, in two mappings, as in two processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "fs/channel/client_end.hpp"
#include "fs/channel/shard_end.hpp"

namespace cairn::fs {
namespace {

constexpr ChannelShape kShape{4, 8192};

std::string_view text_of(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Channel : public testing::Test {
protected:
    Channel() : doorbell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        shard.emplace(Segment::create(kShape).value());
        client.emplace(Segment::map(dup(shard->segment().fd()), kShape).value(), doorbell);
    }
    ~Channel() override { ::close(doorbell); }
    std::uint32_t ask(std::string_view text) {
        const std::uint32_t slot = client->take_slot().value();
        std::memcpy(client->request(slot).data(), text.data(), text.size());
        client->ask(slot, static_cast<std::uint32_t>(text.size()));
        return slot;
    }
    std::string_view take(std::uint32_t slot) {
        const auto request = shard->take(slot);
        EXPECT_TRUE(request.has_value());
        return request ? text_of(*request) : "";
    }
    // Returns the head that a client could overwrite.
    [[nodiscard]] SlotHead& head(std::uint32_t slot) const { return shard->segment().slot(slot); }
    [[nodiscard]] std::uint64_t rung() const {
        eventfd_t count = 0;
        return eventfd_read(doorbell, &count) == 0 ? count : 0;
    }

    int doorbell;
    std::optional<ShardEnd> shard;
    std::optional<ClientEnd> client;
};

TEST_F(Channel, CarriesRequestsAndAnswers) {
    EXPECT_EQ(shard->take_pending(), 0U);
    const std::uint32_t one = ask("first");
    const std::uint32_t two = ask("second");
    EXPECT_TRUE(shard->has_pending());
    EXPECT_EQ(shard->take_pending(), 3U);
    EXPECT_FALSE(shard->has_pending());
    EXPECT_EQ(take(two), "second");
    EXPECT_EQ(take(one), "first");
    EXPECT_FALSE(client->answer(two).has_value());
    shard->answer(two, bytes_of("2"));
    EXPECT_EQ(text_of(client->answer(two).value()), "2");
    EXPECT_FALSE(client->answer(one).has_value());
    shard->answer(one, {});
    EXPECT_EQ(client->answer(one)->size(), 0U);
    client->give_back(one);
    client->give_back(two);
    EXPECT_EQ(rung(), 0U) << "nobody slept";
    EXPECT_EQ(shard->breach(), ChannelBreach::None);
}

TEST_F(Channel, HasNoMoreCallsThanSlots) {
    for (std::uint32_t i = 0; i != kShape.slots; ++i) {
        EXPECT_EQ(ask("x"), i);
    }
    EXPECT_FALSE(client->take_slot().has_value());
    EXPECT_EQ(shard->take_pending(), 15U);
    EXPECT_EQ(take(2), "x");
    shard->answer(2, {});
    EXPECT_FALSE(client->take_slot().has_value()) << "its answer was not given back";
    client->give_back(2);
    EXPECT_EQ(client->take_slot(), 2U);
}

TEST_F(Channel, DataAreSeenByBoth) {
    const std::uint32_t slot = client->take_slot().value();
    ASSERT_EQ(client->data(slot).size(), kShape.data_bytes);
    std::memset(client->data(slot).data(), 7, kShape.data_bytes);
    client->ask(slot, 0);
    ASSERT_TRUE(shard->take(slot).has_value());
    EXPECT_EQ(shard->data(slot)[kShape.data_bytes - 1], 7);
    shard->data(slot)[5] = 9;
    shard->answer(slot, {});
    EXPECT_EQ(client->data(slot)[5], 9);
    EXPECT_EQ(shard->data(slot + 1)[0], 0) << "another slot's";
}

TEST_F(Channel, ARequestIsCopiedOnce) {
    const std::uint32_t slot = ask("honest");
    const auto request = shard->take(slot);
    std::memcpy(client->request(slot).data(), "SPOILT", 6);
    EXPECT_EQ(text_of(*request), "honest");
    EXPECT_FALSE(shard->take(slot).has_value()) << "it was taken";
    EXPECT_EQ(shard->breach(), ChannelBreach::None);
}

TEST_F(Channel, ARequestBeforeTheAnswerIsABreach) {
    const std::uint32_t slot = ask("x");
    ASSERT_TRUE(shard->take(slot).has_value());
    head(slot).asked.fetch_add(1);
    EXPECT_FALSE(shard->take(slot).has_value());
    EXPECT_EQ(shard->breach(), ChannelBreach::BadCount);
    EXPECT_FALSE(shard->take(slot + 1).has_value());
}

TEST_F(Channel, ACountThatIsNotTheNextIsABreach) {
    head(1).asked.store(2);
    EXPECT_FALSE(shard->take(1).has_value());
    EXPECT_EQ(shard->breach(), ChannelBreach::BadCount);
}

TEST_F(Channel, ARequestBeyondItsRoomIsABreach) {
    head(0).request_bytes = kRequestBytes + 1;
    head(0).asked.store(1);
    EXPECT_FALSE(shard->take(0).has_value());
    EXPECT_EQ(shard->breach(), ChannelBreach::BadLength);
}

TEST_F(Channel, WhatAClientWritesOfTheShardsOwnChangesNothing) {
    const std::uint32_t slot = ask("x");
    ASSERT_TRUE(shard->take(slot).has_value());
    head(slot).answered.store(77);
    head(slot).answer_bytes = 0xffffffffU;
    shard->segment().head().pending.store(~std::uint64_t{0});
    EXPECT_EQ(shard->take_pending(), 15U) << "no slot that is not there";
    EXPECT_TRUE(shard->is_taken(slot));
    shard->answer(slot, bytes_of("y"));
    EXPECT_EQ(text_of(client->answer(slot).value()), "y");
    head(slot).answer_bytes = 0xffffffffU;
    EXPECT_EQ(client->answer(slot)->size(), kAnswerBytes);
}

TEST_F(Channel, RingsAShardThatSleeps) {
    shard->doorbell().begin_sleep();
    const std::uint32_t slot = ask("x");
    EXPECT_EQ(rung(), 1U);
    EXPECT_TRUE(shard->has_pending());
    (void)ask("y");
    EXPECT_EQ(rung(), 0U) << "it is awake";
    EXPECT_EQ(take(slot), "x");
}

TEST_F(Channel, ASlotIsUsedAgainAndAgain) {
    for (int i = 0; i != 5000; ++i) {
        const std::uint32_t slot = ask("x");
        EXPECT_EQ(shard->take_pending(), 1U);
        ASSERT_TRUE(shard->take(slot).has_value());
        shard->answer(slot, {});
        ASSERT_TRUE(client->answer(slot).has_value());
        client->give_back(slot);
    }
}

// Either of the two may sleep first.
TEST_F(Channel, NoAnswerIsSleptThrough) {
    constexpr std::uint32_t kCalls = 20'000;
    std::thread serving([this] {
        for (std::uint32_t done = 0; done != kCalls;) {
            for (std::uint64_t slots = shard->take_pending(); slots != 0; slots &= slots - 1) {
                const auto slot = static_cast<std::uint32_t>(std::countr_zero(slots));
                const auto request = shard->take(slot);
                ASSERT_TRUE(request.has_value());
                if (done % 64 == 0) {
                    std::this_thread::sleep_for(std::chrono::microseconds(200));  // the client goes to sleep
                }
                shard->answer(slot, *request);
                ++done;
            }
        }
    });
    for (std::uint32_t call = 0; call != kCalls; ++call) {
        const std::uint32_t slot = client->take_slot().value();
        std::memcpy(client->request(slot).data(), &call, sizeof(call));
        client->ask(slot, sizeof(call));
        while (!client->answer(slot)) {
            client->wait(seconds(10));
        }
        std::uint32_t answered = 0;
        std::memcpy(&answered, client->answer(slot)->data(), sizeof(answered));
        EXPECT_EQ(answered, call);
        client->give_back(slot);
    }
    serving.join();
}

TEST_F(Channel, AWaitEndsWithoutAnAnswerToo) {
    (void)ask("x");
    client->wait(milliseconds(1));
    EXPECT_FALSE(client->any_answered());
}

TEST(ChannelSegment, CannotBeCut) {
    const Segment segment = Segment::create(kShape).value();
    EXPECT_NE(ftruncate(segment.fd(), 4096), 0);
    EXPECT_NE(fcntl(segment.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor sealed further";
}

TEST(ChannelSegment, OfAnotherKindIsRefused) {
    const Segment segment = Segment::create(kShape).value();
    EXPECT_FALSE(Segment::map(dup(segment.fd()), {5, 8192}).ok());
    EXPECT_TRUE(Segment::map(dup(segment.fd()), kShape).ok());
    const int open = memfd_create("test", MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(open, static_cast<off_t>(Segment::bytes_of(kShape))), 0);
    const auto cut = Segment::map(open, kShape);
    ASSERT_FALSE(cut.ok());
    EXPECT_NE(cut.error().text().find("cannot be cut"), std::string::npos);
    EXPECT_FALSE(Segment::map(-1, kShape).ok());
    EXPECT_FALSE((ChannelShape{0, 4096}.is_valid()));
    EXPECT_FALSE((ChannelShape{65, 4096}.is_valid()));
    EXPECT_FALSE((ChannelShape{1, 5000}.is_valid()));
    EXPECT_FALSE((ChannelShape{1, 0}.is_valid()));
    EXPECT_TRUE((ChannelShape{64, 4096}.is_valid()));
}

}  // namespace
}  // namespace cairn::fs
