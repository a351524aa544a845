// The slots of queues: the parts of requests that they keep, and their memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/roce/qp/receive_queue.hpp"
#include "lib/roce/qp/send_queue.hpp"

namespace cairn::roce {
namespace {

TEST(RcReceiveQueue, ResizedItKeepsTheMemoryOfWhatIsInIt) {
    ReceiveQueue queue(4, 2);
    const auto post = [&queue](std::uint64_t id) {
        const std::array<Sge, 2> sges{Sge{id, 1, Lkey{7}}, Sge{100 + id, 2, Lkey{8}}};
        return queue.post({id, std::span(sges).first(id % 3)});
    };
    ReceiveWqe taken;
    std::uint64_t next = 0;
    std::uint64_t oldest = 0;
    for (const std::uint32_t slots : {4U, 9U, 4U, 64U}) {
        ASSERT_TRUE(queue.resize(slots).ok());
        while (post(next) == PostVerdict::Posted) {
            ++next;
        }
        while (queue.size() > 3) {
            queue.take(taken);
            ASSERT_EQ(taken.head.wr_id, oldest);
            ASSERT_EQ(taken.pieces().size(), oldest % 3);
            for (std::size_t i = 0; i < taken.pieces().size(); ++i) {
                EXPECT_EQ(taken.pieces()[i].address, 100 * i + oldest);
                EXPECT_EQ(taken.pieces()[i].bytes, i + 1);
            }
            ++oldest;
        }
    }
}

TEST(RcReceiveQueue, ARequestWithoutMemoryTakesSixteenBytes) {
    ReceiveQueue queue(64, 0);
    EXPECT_EQ(ReceiveQueue::bytes_for(64, 0), 64U * 16U);
    const std::vector<Sge> one{{0, 1, {}}};
    EXPECT_EQ(queue.post({1, one}), PostVerdict::TooManySges);
    EXPECT_EQ(queue.post({1, {}}), PostVerdict::Posted);
    ReceiveWqe taken;
    queue.take(taken);
    EXPECT_EQ(taken.head.wr_id, 1U);
    EXPECT_TRUE(taken.pieces().empty());
    EXPECT_EQ(ReceiveQueue::bytes_for(64, 1), 64U * (16U + sizeof(Sge)));
}

TEST(RcReceiveQueue, ARequestOfManyPiecesIsTakenToTheirPlace) {
    ReceiveQueue queue(2, kMaxSges);
    std::array<Sge, kMaxSges> sges;
    for (std::uint32_t i = 0; i < kMaxSges; ++i) {
        sges[i] = {i, 1, {}};
    }
    std::array<Sge, kMaxSges> many;
    ReceiveWqe taken;
    taken.many = many.data();
    for (const std::size_t count : {std::size_t{ReceiveWqe::kFewSges}, sges.size()}) {
        ASSERT_EQ(queue.post({1, std::span(sges).first(count)}), PostVerdict::Posted);
        queue.take(taken);
        ASSERT_EQ(taken.pieces().size(), count);
        EXPECT_EQ(taken.pieces().data(), count == sges.size() ? many.data() : taken.few.data());
        EXPECT_EQ(taken.pieces().back().address, count - 1);
    }
}

TEST(RcReceiveQueue, TheLongestRequestIsCounted) {
    ReceiveQueue queue(1, kMaxSges);
    const std::vector<Sge> sges(kMaxSges, Sge{0, 0xffffffffU, {}});
    ASSERT_EQ(queue.post({1, sges}), PostVerdict::Posted);
    EXPECT_EQ(queue.front().bytes, std::uint64_t{0xffffffffU} * kMaxSges);
    EXPECT_EQ(queue.front().sge_count, kMaxSges);
}

TEST(RcSendQueue, SlotsAreAsLargeAsTheirCapacitySays) {
    EXPECT_EQ(SendQueue::bytes_for(128, 1, 0), 128U * (sizeof(SendWqe) + sizeof(Sge)));
    EXPECT_EQ(SendQueue::bytes_for(128, 1, 17), 128U * (sizeof(SendWqe) + 32));
    EXPECT_EQ(SendQueue::bytes_for(128, 4, 64), 128U * (sizeof(SendWqe) + 64));
    EXPECT_EQ(SendQueue::bytes_for(128, kMaxSges, 64), 128U * (sizeof(SendWqe) + kMaxSges * sizeof(Sge)));
}

// SGEs and inline bytes use the same memory in turn.
TEST(RcSendQueue, EachRequestHasItsOwnMemory) {
    SendQueue queue(4, 3, 40);
    std::array<std::uint8_t, 40> bytes{};
    for (std::uint32_t round = 0; round < 20; ++round) {
        while (queue.tail() - queue.head() < 4) {
            const std::uint32_t at = queue.tail();
            const std::array<Sge, 3> sges{Sge{at, 1, {}}, Sge{at + 1, 2, {}}, Sge{at + 2, 3, {}}};
            bytes.fill(static_cast<std::uint8_t>(at));
            SendRequest request;
            request.is_inline = at % 2 == 0;
            request.sges = request.is_inline ? std::span<const Sge>{} : std::span<const Sge>(sges);
            request.inline_bytes = bytes;
            ASSERT_EQ(queue.post(request), PostVerdict::Posted);
        }
        for (std::uint32_t at = queue.head(); at != queue.tail(); ++at) {
            if (at % 2 == 0) {
                const std::span<const std::uint8_t> kept = queue.inline_at(at);
                ASSERT_EQ(kept.size(), bytes.size());
                EXPECT_TRUE(std::all_of(kept.begin(), kept.end(), [at](std::uint8_t byte) { return byte == at; }));
            } else {
                const std::span<const Sge> kept = queue.pieces_at(at);
                ASSERT_EQ(kept.size(), 3U);
                EXPECT_TRUE(kept[0].address == at && kept[1].address == at + 1 && kept[2].address == at + 2);
            }
        }
        queue.pop();
    }
}

}  // namespace
}  // namespace cairn::roce
