// lib/telemetry: lists of counters, and the registry that enumerates them.
#include "lib/telemetry/registry.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::telemetry {

#define CAIRN_FIRST_COUNTERS(X)                     \
    X(Received, "received", "packets that came in") \
    X(Damaged, "damaged", "packets that were damaged")
#define CAIRN_SECOND_COUNTERS(X)                         \
    X(Sent, "sent_to_the_peer", "packets that went out") \
    X(Damaged, "damaged", "packets that were damaged later")

CAIRN_DECLARE_COUNTERS(First, CAIRN_FIRST_COUNTERS);
CAIRN_DECLARE_COUNTERS(Second, CAIRN_SECOND_COUNTERS);

namespace {

CounterList list_of(const CounterSet<First>& set) {
    CounterList list;
    list.add(set);
    return list;
}

class RegistryTest : public testing::Test {
protected:
    RegistryTest() {
        first_.count(First::Received, 7);
        first_.count(First::Damaged, 2);
        second_.count(Second::Sent, 12345);
        second_.count(Second::Damaged, 3);
        lone_ += 5;
    }

    // Returns names and values as visit() reports them.
    std::vector<std::pair<std::string, std::uint64_t>> visited() const {
        std::vector<std::pair<std::string, std::uint64_t>> all;
        registry_.visit([&all](const CounterText& text, std::uint64_t value) { all.emplace_back(text.name, value); });
        return all;
    }

    using Visited = std::vector<std::pair<std::string, std::uint64_t>>;
    CounterSet<First> first_;
    CounterSet<Second> second_;
    Counter lone_;
    Registry registry_;
};

TEST_F(RegistryTest, ListsGroupsInTheOrderInWhichTheyCame) {
    CounterList list;
    list.add({"lone", "events of one kind"}, lone_);
    const Registration lone = registry_.add(list);
    const Registration first = registry_.add(list_of(first_));
    EXPECT_EQ(visited(), (Visited{{"lone", 5}, {"received", 7}, {"damaged", 2}}));
    lone_ += 1;
    EXPECT_EQ(visited(), (Visited{{"lone", 6}, {"received", 7}, {"damaged", 2}}));
}

TEST_F(RegistryTest, AddsUpCountersOfOneName) {
    CounterList list;
    list.add(first_).add(second_);
    const Registration both = registry_.add(list);
    const Registration again = registry_.add(list_of(first_));
    EXPECT_EQ(visited(), (Visited{{"received", 14}, {"damaged", 7}, {"sent_to_the_peer", 12345}}));
    EXPECT_EQ(registry_.json(), R"({"received":14,"damaged":7,"sent_to_the_peer":12345})");
}

TEST_F(RegistryTest, LinesUpAllGroupsAndLeavesOutZeros) {
    const CounterSet<First> silent;
    const Registration none = registry_.add(list_of(silent));
    EXPECT_EQ(registry_.text(), "");
    EXPECT_EQ(registry_.json(), R"({"received":0,"damaged":0})");
    CounterList list;
    list.add(second_).add({"lone", "events of one kind"}, lone_);
    const Registration some = registry_.add(list);
    EXPECT_EQ(registry_.text(),
              "  damaged               3  packets that were damaged\n"
              "  sent_to_the_peer  12345  packets that went out\n"
              "  lone                  5  events of one kind\n");
}

TEST_F(RegistryTest, AGroupLeavesWithItsRegistration) {
    Registration kept;
    {
        Registration first = registry_.add(list_of(first_));
        CounterList list;
        list.add({"lone", "events of one kind"}, lone_);
        Registration lone = registry_.add(list);
        kept = std::move(first);
        EXPECT_EQ(visited().size(), 3U);
    }
    EXPECT_EQ(visited(), (Visited{{"received", 7}, {"damaged", 2}}));
    Registration moved(std::move(kept));
    EXPECT_EQ(visited().size(), 2U);
    CounterList other;
    other.add(second_);
    moved = registry_.add(other);  // takes the place of the first group
    EXPECT_EQ(visited(), (Visited{{"sent_to_the_peer", 12345}, {"damaged", 3}}));
    moved.leave();
    moved.leave();
    EXPECT_TRUE(visited().empty());
    EXPECT_EQ(registry_.json(), "{}");
}

TEST_F(RegistryTest, AVisitorMayUseTheRegistry) {
    const Registration first = registry_.add(list_of(first_));
    std::vector<Registration> added;
    registry_.visit([&](const CounterText&, std::uint64_t) { added.push_back(registry_.add(list_of(first_))); });
    EXPECT_EQ(added.size(), 2U);
    EXPECT_EQ(visited(), (Visited{{"received", 21}, {"damaged", 6}}));
}

TEST_F(RegistryTest, IsReadWhileOthersCountAndGroupsComeAndGo) {
    std::atomic<bool> stop{false};
    const Registration stays = registry_.add(list_of(first_));
    std::thread counting([&] {
        while (!stop) {
            std::optional<CounterSet<Second>> brief(std::in_place);
            CounterList list;
            list.add(*brief);
            const Registration leaves = registry_.add(list);
            brief->count(Second::Sent);
            first_.count(First::Received);
        }
    });
    std::uint64_t before = 0;
    for (int i = 0; i < 2'000; ++i) {
        const Visited now = visited();
        ASSERT_GE(now.size(), 2U);
        ASSERT_GE(now[0].second, before);
        before = now[0].second;
    }
    stop = true;
    counting.join();
}

TEST(RegistryDeathTest, OutlivesItsRegistrations) {
    const CounterSet<First> set;
    EXPECT_DEATH(
        {
            Registration orphan;
            Registry registry;
            orphan = registry.add(list_of(set));
        },
        "groups_.empty");
}

TEST(CounterListDeathTest, TakesOnlyWellFormedTexts) {
    const Counter counter;
    CounterList list;
    EXPECT_DEATH(list.add({"Bad Name", "x"}, counter), "well_formed");
    EXPECT_DEATH(list.add({"name", ""}, counter), "well_formed");
}

TEST(Counters, OfSeveralThreadsAddUp) {
    CounterSet<First> shared;
    const auto count = [&shared] {
        for (int i = 0; i < 10'000; ++i) {
            shared.count_shared(First::Damaged);
        }
    };
    std::thread other(count);
    count();
    other.join();
    EXPECT_EQ(shared.of(First::Damaged), 20'000U);
    EXPECT_EQ(shared.of(First::Received), 0U);
}

}  // namespace
}  // namespace cairn::telemetry
