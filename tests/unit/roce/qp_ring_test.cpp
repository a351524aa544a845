// The list of waiting queue pairs: order, places, and the cost of leaving it.
#include "lib/roce/qp/qp_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cairn::roce {
namespace {

struct Member {
    int number = 0;
    QpRingLink<Member> link{};
    QpRingLink<Member> other{};
};
using Ring = QpRing<Member>;

std::vector<int> empty(Ring& ring) {
    std::vector<int> numbers;
    while (ring.size() != 0) {
        numbers.push_back(ring.pop().number);
    }
    return numbers;
}

TEST(QpRing, KeepsTheOrderOfArrivalAndEachOnce) {
    std::array<Member, 3> members{{{1}, {2}, {3}}};
    Ring ring;
    for (Member& member : members) {
        ring.push(member);
        ring.push(members[0]);
    }
    EXPECT_EQ(ring.size(), 3U);
    EXPECT_EQ(empty(ring), (std::vector<int>{1, 2, 3}));
    ring.push(members[2]);
    ring.push(members[0]);
    EXPECT_EQ(empty(ring), (std::vector<int>{3, 1}));
}

TEST(QpRing, SaysWhatHoldsForAll) {
    std::array<Member, 3> members{{{1}, {2}, {3}}};
    Ring ring;
    const auto all_below = [&ring](int limit) {
        return ring.all_of([limit](const Member& each) { return each.number < limit; });
    };
    EXPECT_TRUE(all_below(0));
    for (Member& member : members) {
        ring.push(member);
    }
    EXPECT_TRUE(all_below(4));
    EXPECT_FALSE(all_below(3));
    EXPECT_FALSE(all_below(1));
}

TEST(QpRing, WhoeverLeavesTakesNobodyAlong) {
    for (int leaves = 0; leaves < 4; ++leaves) {
        std::array<Member, 4> members{{{0}, {1}, {2}, {3}}};
        Ring ring;
        std::vector<int> left;
        for (Member& member : members) {
            ring.push(member);
            if (member.number != leaves) {
                left.push_back(member.number);
            }
        }
        ring.remove(members[static_cast<std::size_t>(leaves)]);
        ring.remove(members[static_cast<std::size_t>(leaves)]);
        EXPECT_EQ(ring.size(), 3U);
        ring.push(members[static_cast<std::size_t>(leaves)]);
        left.push_back(leaves);
        EXPECT_EQ(empty(ring), left);
    }
}

TEST(QpRing, AMemberOfTwoListsLeavesOne) {
    std::array<Member, 2> members{{{1}, {2}}};
    Ring one;
    QpRing<Member, &Member::other> other;
    for (Member& member : members) {
        one.push(member);
        other.push(member);
    }
    one.remove(members[0]);
    EXPECT_EQ(one.size(), 1U);
    EXPECT_EQ(other.pop().number, 1);
}

// All queue pairs of a large server end: this would be ten thousand million steps if each searched the whole list.
TEST(QpRing, LeavingALongListIsCheap) {
    std::vector<Member> members(200'000);
    Ring ring;
    for (Member& member : members) {
        ring.push(member);
    }
    for (std::size_t i = members.size(); i-- > 0;) {
        ring.remove(members[i]);
    }
    EXPECT_EQ(ring.size(), 0U);
}

}  // namespace
}  // namespace cairn::roce
