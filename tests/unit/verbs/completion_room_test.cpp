// The completion queues of cairn-perf's server: room for all that its clients' requests may make at once.
#include "apps/perf/completion_room.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::perf {
namespace {

struct PerfCompletionRoom : testing::Test {
    // Returns how many completions the queue takes; earlier ones are taken out.
    std::uint32_t pushed(std::uint32_t most) {
        std::uint32_t count = 0;
        while (count < most && room.queue().queue().push({})) {
            ++count;
        }
        verbs::VerbsPair::drain(room.queue());
        return count;
    }

    verbs::VerbsHost host{"10.0.0.1", 5};
    CompletionRoom room{host.device.create_cq(64).value()};
    const net::IpAddress a = net::IpAddress::from_v4(0x0a000001);
    const net::IpAddress b = net::IpAddress::from_v4(0x0a000002);
};

TEST_F(PerfCompletionRoom, AllRequestsOfAllClientsCompleteAtOnceAndNoneIsLost) {
    std::vector<CompletionRoom::Place> places;
    for (const std::uint32_t slots : {32U, 32U, 1U, 32768U, 130U}) {
        places.push_back(room.take(slots % 2 == 0 ? a : b, slots).value());
    }
    EXPECT_EQ(pushed(32963), 32963U);
    EXPECT_FALSE(room.queue().overrun());
}

TEST_F(PerfCompletionRoom, WhatIsInTheQueueStaysWhereItGrows) {
    const auto first = room.take(a, 64).value();
    verbs::Completion completion;
    completion.wr_id = 17;
    ASSERT_TRUE(room.queue().queue().push(completion));
    const auto second = room.take(a, 1).value();
    const std::vector<verbs::Completion> all = verbs::VerbsPair::drain(room.queue());
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].wr_id, 17U);
}

TEST_F(PerfCompletionRoom, ThoseWhoLeftNeedNoRoom) {
    for (int i = 0; i < 100; ++i) {
        const auto place = room.take(a, 64);
        ASSERT_TRUE(place.ok());
    }
    EXPECT_EQ(room.queue().slots(), 64U);
    CompletionRoom::Place kept = room.take(a, 64).value();
    kept = room.take(b, 32).value();
    EXPECT_TRUE(room.take(b, 32).ok());
    EXPECT_EQ(room.queue().slots(), 128U);
}

TEST_F(PerfCompletionRoom, AHostLeavesAsMuchToOthersAsItHas) {
    std::vector<CompletionRoom::Place> places;
    for (Result<CompletionRoom::Place> place = room.take(a, 32768); place.ok(); place = room.take(a, 32768)) {
        places.push_back(std::move(place).value());
    }
    EXPECT_EQ(places.size(), CompletionRoom::kMostSlots / 32768 / 2);
    EXPECT_NE(room.take(a, 1).error().text().find("--depth"), std::string::npos);
    EXPECT_TRUE(room.take(b, 32768).ok());
    EXPECT_FALSE(room.take(b, ~0U).ok());
    places.pop_back();
    EXPECT_TRUE(room.take(a, 32768).ok());
}

}  // namespace
}  // namespace cairn::perf
