// Regions, domains and keys; pieces of scatter lists; memory is never touched outside a region.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/scatter.hpp"

namespace cairn::roce::rc {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr MemoryTable::Seed kSeed{1, 2};

struct Fixture : testing::Test {
    MemoryTable table{8, kSeed};
    Pd pd = table.create_pd();
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(100);

    Rkey add(std::uint64_t base, Rights rights = Right::LocalWrite) {
        return table.register_region({pd, bytes, base, rights}).value();
    }
};
using RcMemory = Fixture;

TEST_F(RcMemory, RangesAreJudgedWithoutOverflow) {
    struct Case {
        std::uint64_t base, address, bytes;
        std::optional<MemoryRefusal> refusal;
    };
    const std::vector<Case> cases{
        {1000, 1000, 100, std::nullopt},
        {1000, 1099, 1, std::nullopt},
        {1000, 1100, 0, std::nullopt},
        {1000, 1101, 0, MemoryRefusal::OutOfRange},
        {1000, 999, 1, MemoryRefusal::OutOfRange},
        {1000, 1099, 2, MemoryRefusal::OutOfRange},
        {1000, 1000, 101, MemoryRefusal::OutOfRange},
        {1000, 1001, kMost, MemoryRefusal::OutOfRange},
        {1000, kMost, 2, MemoryRefusal::OutOfRange},
        {1000, kMost, kMost, MemoryRefusal::OutOfRange},
        {0, 0, 100, std::nullopt},
        {0, kMost, 1, MemoryRefusal::OutOfRange},
        {kMost - 100, kMost - 1, 1, std::nullopt},
        {kMost - 100, kMost - 1, 2, MemoryRefusal::OutOfRange},
        {kMost - 100, 5, 1, MemoryRefusal::OutOfRange},
    };
    for (const Case& one : cases) {
        const Rkey key = add(one.base);
        const MemoryView view = table.find(key, pd, {}, one.address, one.bytes);
        EXPECT_EQ(view.refusal, one.refusal) << one.base << ' ' << one.address << ' ' << one.bytes;
        EXPECT_EQ(view.data, one.refusal == std::nullopt ? bytes.data() + (one.address - one.base) : nullptr);
        EXPECT_TRUE(table.destroy_region(key));
    }
    EXPECT_FALSE(table.register_region({pd, bytes, kMost - 99, {}}).ok());
}

TEST_F(RcMemory, ANullRegionReadsAsZerosWhateverIsWritten) {
    bytes.assign(2 * std::size_t{kNullBytes}, 0);
    RegionRequest request{pd, bytes};
    request.is_null = true;
    const Rkey key = table.register_region(request).value();
    EXPECT_EQ(table.find(key, pd, {}, 12345, kNullBytes).data, bytes.data());
    EXPECT_EQ(table.find(key, pd, Right::LocalWrite, kMost, kNullBytes).data, bytes.data() + kNullBytes);
    EXPECT_EQ(table.find(key, pd, {}, 0, kNullBytes + 1).refusal, MemoryRefusal::OutOfRange);
    EXPECT_EQ(table.find(key, pd, Right::BindWindow, 0, 1).refusal, MemoryRefusal::NoRight);
    EXPECT_EQ(table.find(key, table.create_pd(), {}, 0, 1).refusal, MemoryRefusal::WrongPd);
    const KeyUser user{pd, Qpn{2}};
    EXPECT_EQ(table.find_remote(key, user, Right::RemoteRead, 0, 1).refusal, MemoryRefusal::NoRight);
    EXPECT_EQ(table.judge_invalidate(key, user), MemoryRefusal::UnknownKey);
    EXPECT_FALSE(table.destroy_window(key));
    EXPECT_FALSE(table.destroy_region(table.create_window(pd, WindowType::Type1).value()));
    EXPECT_FALSE(table.reregister_region(key, {}).ok());
    EXPECT_TRUE(table.destroy_region(key));
    EXPECT_EQ(table.find(key, pd, {}, 0, 1).refusal, MemoryRefusal::UnknownKey);
}

TEST_F(RcMemory, EveryRightIsAskedForAlone) {
    const std::vector<Right> all{Right::LocalWrite, Right::RemoteWrite, Right::RemoteRead, Right::RemoteAtomic};
    for (const Right granted : all) {
        const Rkey key = add(0, Rights{granted} | Right::LocalWrite);
        for (const Right wanted : all) {
            const bool fits = wanted == granted || wanted == Right::LocalWrite;
            EXPECT_EQ(table.find(key, pd, wanted, 0, 1).refusal,
                      fits ? std::nullopt : std::optional(MemoryRefusal::NoRight));
        }
        EXPECT_TRUE(table.destroy_region(key));
    }
    EXPECT_FALSE(table.register_region({pd, bytes, 0, Right::RemoteWrite}).ok());
    EXPECT_FALSE(table.register_region({pd, bytes, 0, Right::RemoteAtomic}).ok());
    EXPECT_TRUE(table.register_region({pd, bytes, 0, Right::RemoteRead}).ok());
}

TEST_F(RcMemory, AKeyDiesWithItsRegionAndIsNotSoonUsedAgain) {
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 8 * 256; ++i) {
        const Rkey key = add(0);
        EXPECT_TRUE(seen.insert(key.value).second) << i;
        EXPECT_EQ(table.find(key, pd, {}, 0, 1).refusal, std::nullopt);
        EXPECT_TRUE(table.destroy_region(key));
        EXPECT_EQ(table.find(key, pd, {}, 0, 1).refusal, MemoryRefusal::UnknownKey);
        EXPECT_FALSE(table.destroy_region(key));
    }
    EXPECT_EQ(table.regions_in_use(), 0U);
}

TEST_F(RcMemory, KeysFollowFromTheSeedAndTellNothingWithoutIt) {
    MemoryTable same{8, kSeed};
    MemoryTable other{8, {1, 3}};
    const Pd same_pd = same.create_pd();
    const Pd other_pd = other.create_pd();
    std::set<std::uint32_t> differences;
    Rkey before{};
    for (int i = 0; i < 8; ++i) {
        const Rkey key = add(0);
        EXPECT_EQ(same.register_region({same_pd, bytes, 0, {}}).value(), key);
        EXPECT_NE(other.register_region({other_pd, bytes, 0, {}}).value(), key);
        differences.insert(key.value - before.value);
        before = key;
    }
    EXPECT_EQ(differences.size(), 8U);
    EXPECT_FALSE(table.register_region({pd, bytes, 0, {}}).ok());  // full
}

TEST_F(RcMemory, EveryOtherKeyIsUnknown) {
    const Rkey key = add(0);
    for (unsigned bit = 0; bit < 32; ++bit) {
        EXPECT_EQ(table.find(Rkey{key.value ^ (1U << bit)}, pd, {}, 0, 1).refusal, MemoryRefusal::UnknownKey);
    }
    EXPECT_EQ(table.find(key, table.create_pd(), {}, 0, 1).refusal, MemoryRefusal::WrongPd);
}

TEST_F(RcMemory, ADomainLivesAsLongAsItIsUsed) {
    const Rkey key = add(0);
    EXPECT_FALSE(table.destroy_pd(pd));
    EXPECT_TRUE(table.hold_pd(pd));
    EXPECT_TRUE(table.destroy_region(key));
    EXPECT_FALSE(table.destroy_pd(pd));
    table.release_pd(pd);
    EXPECT_TRUE(table.destroy_pd(pd));
    EXPECT_FALSE(table.destroy_pd(pd));
    EXPECT_FALSE(table.hold_pd(pd));
    EXPECT_FALSE(table.register_region({pd, bytes, 0, {}}).ok());
}

TEST_F(RcMemory, OnlyWhatAllowsItIsInvalidated) {
    const Rkey plain = add(0);
    const Rkey open = add(0, Rights{Right::RemoteInvalidate});
    EXPECT_EQ(table.judge_invalidate(plain, {pd, {}}), MemoryRefusal::NoRight);
    EXPECT_EQ(table.judge_invalidate(open, {Pd{9}, {}}), MemoryRefusal::WrongPd);
    EXPECT_EQ(table.judge_invalidate(open, {pd, {}}), std::nullopt);
    table.invalidate(open);
    EXPECT_EQ(table.judge_invalidate(open, {pd, {}}), MemoryRefusal::UnknownKey);
}

TEST_F(RcMemory, PiecesAreThoseOfTheConcatenation) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i);
    }
    const Lkey key{add(0).value};
    const std::vector<Sge> sges{{10, 5, key}, {40, 0, key}, {50, 7, key}, {20, 3, key}};
    std::vector<std::uint8_t> whole;
    for (const Sge& sge : sges) {
        whole.insert(whole.end(), bytes.data() + sge.address, bytes.data() + sge.address + sge.bytes);
    }
    for (std::size_t offset = 0; offset <= whole.size(); ++offset) {
        for (std::size_t count = 0; offset + count <= whole.size() + 1; ++count) {
            Pieces pieces;
            const bool found = find_pieces({table, pd, {}}, sges, offset, count, pieces);
            ASSERT_EQ(found, offset + count <= whole.size() || count == 0);
            std::vector<std::uint8_t> got;
            for (const auto piece : pieces.all()) {
                got.insert(got.end(), piece.begin(), piece.end());
            }
            if (found) {
                const auto from = whole.begin() + static_cast<std::ptrdiff_t>(offset);
                ASSERT_EQ(got, std::vector<std::uint8_t>(from, from + static_cast<std::ptrdiff_t>(count)));
            }
        }
    }
}

TEST_F(RcMemory, APieceWhoseAddressWrapsIsRefused) {
    const Lkey key{add(0).value};
    Pieces pieces;
    const std::vector<Sge> sges{{kMost - 1, 8, key}};
    EXPECT_FALSE(find_pieces({table, pd, {}}, sges, 3, 1, pieces));
    for (const std::uint32_t part : {1U, 8U}) {  // a part of the piece, and all of it
        EXPECT_FALSE(find_pieces({table, pd, Right::RemoteRead}, std::vector<Sge>{{0, 8, key}}, 0, part, pieces));
    }
    EXPECT_TRUE(find_pieces({table, pd, {}}, std::vector<Sge>{{0, 0, Lkey{1}}}, 0, 0, pieces)) << "nobody's key";
}

TEST_F(RcMemory, PlacingCopiesEveryLengthExactly) {
    std::vector<std::uint8_t> from(200);
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::uint8_t>(i + 1);
    }
    for (std::size_t count = 0; count < from.size(); ++count) {
        std::vector<std::uint8_t> to(210, 0xa5);
        EXPECT_TRUE(place(to.data() + 5, std::span(from).first(count)));
        std::vector<std::uint8_t> wanted(210, 0xa5);
        std::copy_n(from.begin(), count, wanted.begin() + 5);
        ASSERT_EQ(to, wanted) << count;
    }
}

}  // namespace
}  // namespace cairn::roce::rc
