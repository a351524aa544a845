// The slots of names, and the daemons of slots.
#include "fs/placement/placement.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fs/placement/slot_table.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {
namespace {

constexpr SipKey kKey{1, 2};

// The expected values are from CHFS's own tests.
TEST(Koyama, IsTheSumOfNumbersAndBytes) {
    EXPECT_EQ(koyama_hash(""), 0U);
    EXPECT_EQ(koyama_hash("a"), 97U);
    EXPECT_EQ(koyama_hash("abc"), 294U);
    EXPECT_EQ(koyama_hash("abc123"), 417U);
    EXPECT_EQ(koyama_hash("abc12300a10"), 12701U);
    EXPECT_EQ(koyama_hash("007"), 7U);
}

// FINCHFS reads signs and blanks as parts of numbers, and crashes with "-1".
TEST(Koyama, HasNoOddNames) {
    EXPECT_EQ(koyama_hash("-1"), 46U);
    EXPECT_EQ(koyama_hash(" 5"), 37U);
    EXPECT_EQ(koyama_hash("\xff\x80"), 0xffU + 0x80U);
    EXPECT_EQ(koyama_hash("4294967296"), 0U) << "modulo 2^32";
    EXPECT_EQ(koyama_hash("4294967297a"), 98U);
    EXPECT_EQ(koyama_hash("100000000000000000000000000000"), koyama_hash("100000000000000000000000000000"));
    const Placement placement(Spread::Koyama, 3, kKey);
    for (const char* name : {"-1", "-9", "\xff", "999999999999999999999999999999"}) {
        EXPECT_LT(placement.slot_of(1, 1, name), kSlots);
    }
}

TEST(Koyama, PlacesModuloTheDaemons) {
    for (const std::uint32_t daemons : {1U, 2U, 3U, 100U, 4095U, 4096U}) {
        const Placement placement(Spread::Koyama, daemons, kKey);
        const SlotTable table(daemons);
        for (std::uint32_t i = 0; i < 5000; i += 7) {
            const std::string name = fmt::format("file{}", i);
            ASSERT_EQ(table.owner(placement.slot_of(1, 1, name)), koyama_hash(name) % daemons);
        }
    }
}

// Returns the largest share of 100 daemons, over the mean.
double imbalance(const std::vector<std::string>& names, Spread spread = Spread::Even) {
    constexpr std::uint32_t kDaemons = 100;
    const Placement placement(spread, kDaemons, kKey);
    const SlotTable table(kDaemons);
    std::array<std::uint32_t, kDaemons> count{};
    for (const std::string& name : names) {
        ++count[table.owner(placement.slot_of(7, 7, name))];
    }
    return static_cast<double>(*std::max_element(count.begin(), count.end())) * kDaemons /
           static_cast<double>(names.size());
}

TEST(Placement, SpreadsConsecutiveNumbers) {
    std::vector<std::string> names;
    for (int i = 0; i != 10'000; ++i) {
        names.push_back(fmt::format("out.{:08}", i));
    }
    EXPECT_LE(imbalance(names), 1.06);
    names.clear();
    for (int rank = 0; rank != 64; ++rank) {
        for (int i = 0; i != 500; ++i) {
            names.push_back(fmt::format("file.mdtest.{}.{}", rank, i));
        }
    }
    EXPECT_LE(imbalance(names), 1.06);
}

TEST(Placement, SpreadsNumbersInSteps) {
    for (const int step : {2, 10, 64, 100, 128, 1000, 4096}) {
        std::vector<std::string> names;
        for (int i = 0; i != 10'000; ++i) {
            names.push_back(fmt::format("frame{}.png", i * step));
        }
        EXPECT_LE(imbalance(names), 1.3) << step;
        if (step == 100) {
            EXPECT_EQ(imbalance(names, Spread::Koyama), 100) << "what the even spread is for";
        }
    }
}

TEST(Placement, SpreadsAnyNames) {
    sim::Random random(3);
    std::vector<std::string> names;
    for (int i = 0; i != 10'000; ++i) {
        names.emplace_back();
        for (int k = 0; k != 8; ++k) {
            names.back().push_back(static_cast<char>('a' + random.below(26)));
        }
    }
    EXPECT_LE(imbalance(names), 1.3);
}

TEST(Placement, IsOfTheDirectoryAndTheKeyToo) {
    const Placement one(Spread::Even, 100, kKey);
    const Placement other(Spread::Even, 100, {1, 3});
    int same = 0;
    for (std::uint64_t directory = 0; directory != 300; ++directory) {
        same += one.slot_of(directory, 1, "x") == one.slot_of(directory + 1, 1, "x") ? 1 : 0;
        same += one.slot_of(directory, 1, "x") == one.slot_of(directory, 2, "x") ? 1 : 0;
        same += one.slot_of(directory, 1, "x") == other.slot_of(directory, 1, "x") ? 1 : 0;
    }
    EXPECT_LT(same, 5);
    EXPECT_NE(one.slot_of(1, 1, "ab"), one.slot_of(1, 1, "ba"));
    EXPECT_NE(one.slot_of(1, 1, "a"), one.slot_of(1, 1, std::string_view("a\0", 2)));
    EXPECT_EQ(one.slot_of(1, 1, "out.007"), one.slot_of(1, 1, "out.7")) << "their names differ, their places need not";
}

TEST(Placement, NeighbouringChunksAreAtDifferentDaemons) {
    const SlotTable table(5);
    for (std::uint32_t chunk = 0; chunk != 4000; ++chunk) {
        const std::uint16_t here = Placement::slot_of_chunk(17, chunk);
        const std::uint16_t next = Placement::slot_of_chunk(17, chunk + 1);
        ASSERT_NE(table.owner(here), table.owner(next)) << chunk;
    }
    EXPECT_EQ(Placement::slot_of_chunk(4095, 0), 4095);
    EXPECT_EQ(Placement::slot_of_chunk(4095, 1), 0);
    EXPECT_EQ(Placement::slot_of_chunk(0, 0xffffffffU), 4095);
}

TEST(SlotTable, ComesBackFromItsBytes) {
    SlotTable table(7);
    table.give(9, 6);
    table.give(4095, 1);
    EXPECT_EQ(table.epoch(), 3U);
    const std::optional<SlotTable> read = SlotTable::parse(table.bytes());
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, table);
    EXPECT_EQ(read->owner(9), 6);
    EXPECT_EQ(read->owner(10), 3);
}

TEST(SlotTable, OfNonsenseIsNone) {
    const std::vector<std::uint8_t> good = SlotTable(7).bytes();
    for (const std::size_t place : {std::size_t{0}, std::size_t{16}, good.size() - 1}) {
        std::vector<std::uint8_t> bad = good;
        bad[place] = 0x7f;
        EXPECT_FALSE(SlotTable::parse(bad).has_value()) << place;
    }
    std::vector<std::uint8_t> bad = good;
    bad[4] = 0;  // no shards
    EXPECT_FALSE(SlotTable::parse(bad).has_value());
    bad = good;
    bad[4] = 6;  // a slot number beyond the shards
    EXPECT_FALSE(SlotTable::parse(bad).has_value());
    bad = good;
    bad[8] = 0;  // epoch 0
    EXPECT_FALSE(SlotTable::parse(bad).has_value());
    bad = good;
    bad.pop_back();
    EXPECT_FALSE(SlotTable::parse(bad).has_value());
    EXPECT_FALSE(SlotTable::parse({}).has_value());
}

}  // namespace
}  // namespace cairn::fs
