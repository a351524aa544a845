// Keys of many regions, and tables that grow.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lib/roce/qp/memory.hpp"

namespace cairn::roce::rc {
namespace {

TEST(RegionKeysTest, EachIndexIsFoundWhateverIsBeside) {
    for (const std::uint32_t regions : {1U, 2U, 3U, 4096U, 1U << 16U, (1U << 16U) + 1, kMaxRegions}) {
        const RegionKeys keys(regions);
        for (const std::uint32_t index : {0U, 1U, RegionKeys::kFirst - 1, RegionKeys::kFirst, regions - 1}) {
            for (const std::uint64_t others : {std::uint64_t{0}, ~std::uint64_t{0}}) {
                if (index < regions) {
                    EXPECT_EQ(keys.index_of(keys.make(index, others, others)), index) << regions;
                    EXPECT_EQ(keys.make(index, others, others).value & 0xffU, others & 0xffU);
                }
            }
        }
    }
}

TEST(RegionKeysTest, TheFirstOfManyKeepEightSecretBits) {
    const RegionKeys keys(kMaxRegions);
    const auto secrets_of = [&keys](std::uint32_t index) {
        std::set<std::uint32_t> seen;
        for (std::uint64_t secret = 0; secret < 1024; ++secret) {
            seen.insert(keys.make(index, secret, 0).value);
        }
        return seen.size();
    };
    EXPECT_EQ(secrets_of(0), 256U);
    EXPECT_EQ(secrets_of(RegionKeys::kFirst - 1), 256U);
    EXPECT_EQ(secrets_of(RegionKeys::kFirst), 8U);
    EXPECT_EQ(secrets_of(kMaxRegions - 1), 8U);
}

TEST(RcManyRegions, ATableGrowsUpToItsLimit) {
    MemoryTable table(kMaxRegions, {1, 2});
    const Pd pd = table.create_pd();
    std::vector<std::uint8_t> bytes(8);
    std::vector<Rkey> keys;
    for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
        keys.push_back(table.register_region({pd, bytes, i, Right::LocalWrite}).value());
    }
    EXPECT_FALSE(table.register_region({pd, bytes, 0, {}}).ok());
    EXPECT_EQ(table.regions_in_use(), kMaxRegions);
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
        wrong += table.find(keys[i], pd, {}, i, 8).data == bytes.data() ? 0U : 1U;
    }
    EXPECT_EQ(wrong, 0U);
    for (const std::uint32_t ended : {3U, kMaxRegions - 1}) {
        EXPECT_TRUE(table.destroy_region(keys[ended]));
        EXPECT_EQ(table.find(keys[ended], pd, {}, ended, 8).refusal, MemoryRefusal::UnknownKey);
    }
    for (int again = 0; again < 2; ++again) {
        EXPECT_TRUE(table.register_region({pd, bytes, 0, {}}).ok());
    }
    EXPECT_FALSE(table.register_region({pd, bytes, 0, {}}).ok());
}

TEST(RcManyRegions, WindowsOverTheLastOnesAreBoundAndFreed) {
    MemoryTable table(2 * RegionKeys::kFirst + 1, {1, 2});
    const Pd pd = table.create_pd();
    std::vector<std::uint8_t> bytes(8);
    Rkey last{};
    for (std::uint32_t i = 0; i < 2 * RegionKeys::kFirst; ++i) {
        last = table.register_region({pd, bytes, 0, Rights{Right::LocalWrite} | Right::BindWindow}).value();
    }
    const Rkey window = table.create_window(pd, WindowType::Type2B).value();
    const KeyUser user{pd, Qpn{7}};
    ASSERT_EQ(table.bind_window({window, Lkey{last.value}, 0, 8, Right::RemoteWrite, false}, user), std::nullopt);
    EXPECT_EQ(table.find_remote(window, user, Right::RemoteWrite, 0, 8).data, bytes.data());
    EXPECT_TRUE(table.has_windows(last));
    table.free_windows(Qpn{8});
    EXPECT_TRUE(table.has_windows(last));
    table.free_windows(Qpn{7});
    EXPECT_FALSE(table.has_windows(last));
}

}  // namespace
}  // namespace cairn::roce::rc
