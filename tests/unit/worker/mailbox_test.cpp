#include "lib/base/mailbox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace cairn {
namespace {

struct Item {
    int thread = 0;
    int number = 0;
    MailLink<Item> mail;
};

TEST(Mailbox, HandsOutInTheOrderOfPosts) {
    Mailbox<Item> box;
    std::array<Item, 5> items;
    EXPECT_TRUE(box.empty());
    EXPECT_FALSE(box.take([](Item&) { ADD_FAILURE(); }));
    for (int i = 0; i < 5; ++i) {
        items[static_cast<std::size_t>(i)].number = i;
        EXPECT_TRUE(box.post(items[static_cast<std::size_t>(i)]));
    }
    EXPECT_FALSE(box.empty());
    std::vector<int> got;
    EXPECT_TRUE(box.take([&](Item& item) { got.push_back(item.number); }));
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(box.empty());
}

// Mail that is posted while mail is handed out comes the next time.
TEST(Mailbox, AnItemMayBePostedAgainAsItIsTaken) {
    Mailbox<Item> box;
    Item item;
    EXPECT_TRUE(box.post(item));
    int taken = 0;
    EXPECT_TRUE(box.take([&](Item& each) {
        ++taken;
        EXPECT_TRUE(box.post(each));
    }));
    EXPECT_EQ(taken, 1);
    EXPECT_TRUE(box.take([&](Item&) { ++taken; }));
    EXPECT_EQ(taken, 2);
}

TEST(Mailbox, AClosedOneTakesNothingAndHandsOutWhatWasLeft) {
    Mailbox<Item> box;
    std::array<Item, 2> items;
    EXPECT_TRUE(box.post(items[0]));
    int left = 0;
    box.close([&](Item& item) {
        ++left;
        EXPECT_FALSE(box.post(item));
    });
    EXPECT_EQ(left, 1);
    EXPECT_FALSE(box.post(items[1]));
}

TEST(Mailbox, LosesNothingOfManyThreadsAndKeepsTheOrderOfEach) {
    constexpr int kThreads = 3;
    constexpr int kEach = 20'000;
    Mailbox<Item> box;
    std::vector<std::vector<Item>> items(kThreads, std::vector<Item>(kEach));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                Item& item = items[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)];
                item.thread = t;
                item.number = i;
                EXPECT_TRUE(box.post(item));
            }
        });
    }
    std::array<int, kThreads> next{};
    int got = 0;
    while (got < kThreads * kEach) {
        box.take([&](Item& item) {
            EXPECT_EQ(item.number, next[static_cast<std::size_t>(item.thread)]++);
            ++got;
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    EXPECT_TRUE(box.empty());
}

}  // namespace
}  // namespace cairn
