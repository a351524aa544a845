// The stores that a daemon opens, makes and refuses.
#include "fs/daemon/stores.hpp"

#include <fstream>

#include "tests/unit/fs_daemon/guest.hpp"

namespace cairn::fs {
namespace {

using test::Folder;

constexpr std::uint64_t kBytes = 16U << 20U;

StoreWishes wishes_of(const std::string& path, std::uint32_t shards = 1) {
    StoreWishes wishes;
    wishes.data_path = path;
    wishes.capacity_bytes = kBytes;
    wishes.shards = shards;
    return wishes;
}

// Expects a refusal that has these words in it, and a remedy.
void expect_refusal(const StoreWishes& wishes, const std::vector<std::string>& words) {
    const auto opened = open_stores(wishes);
    ASSERT_FALSE(opened.ok());
    EXPECT_FALSE(opened.error().remedy.empty());
    for (const std::string& word : words) {
        EXPECT_NE(opened.error().text().find(word), std::string::npos) << opened.error().text();
    }
}

TEST(StoresTest, AStoreIsMadeAndOpenedAgainWithItsKeys) {
    const Folder folder;
    SipKey cluster{};
    SipKey placement{};
    {
        auto made = open_stores(wishes_of(folder / "s"));
        ASSERT_TRUE(made.ok()) << made.error().text();
        EXPECT_TRUE(made.value().stores[0].made);
        EXPECT_NE(made.value().stores[0].describe().find("a new store"), std::string::npos);
        EXPECT_NE(made.value().stores[0].describe().find("durable by fsync"), std::string::npos);
        cluster = made.value().cluster_key;
        placement = made.value().placement_key;
        EXPECT_NE(cluster, placement);
    }
    StoreWishes again = wishes_of(folder / "s");
    again.capacity_bytes = 0;
    auto opened = open_stores(again);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    EXPECT_FALSE(opened.value().stores[0].made);
    EXPECT_EQ(opened.value().chunk_bytes, 1U << 20U);
    EXPECT_EQ(opened.value().cluster_key, cluster);
    EXPECT_EQ(opened.value().placement_key, placement);
    EXPECT_EQ(opened.value().placement_key, placement_key_of(placement[0]));  // as clients compute it
}

TEST(StoresTest, TwoFileSystemsHaveNoKeyInCommon) {
    const auto one = open_stores(wishes_of(""));
    const auto other = open_stores(wishes_of(""));
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_NE(one.value().cluster_key, other.value().cluster_key);
    EXPECT_NE(one.value().placement_key, other.value().placement_key);
}

TEST(StoresTest, AnotherShapeIsRefusedWithBoth) {
    const Folder folder;
    StoreWishes wishes = wishes_of(folder / "s");
    wishes.chunk_bytes = 256U << 10U;
    wishes.spread = Spread::Koyama;
    ASSERT_TRUE(open_stores(wishes).ok());
    ASSERT_TRUE(open_stores(wishes).ok());
    StoreWishes other = wishes;
    other.chunk_bytes = 1U << 20U;
    expect_refusal(other, {"256 KiB", "1 MiB", "--chunk-size"});
    other = wishes;
    other.spread = Spread::Even;
    expect_refusal(other, {"koyama", "even", "--placement"});
    const auto as_it_is = open_stores(wishes_of(folder / "s"));
    ASSERT_TRUE(as_it_is.ok());
    EXPECT_EQ(as_it_is.value().spread, Spread::Koyama);
    EXPECT_EQ(as_it_is.value().facts().spread, Spread::Koyama);
    EXPECT_EQ(as_it_is.value().chunk_bytes, 256U << 10U);
}

TEST(StoresTest, WhatIsNoStoreIsLostByFormatAlone) {
    const Folder folder;
    {
        std::ofstream file(folder / "s", std::ios::binary);
        file.seekp(4096 + 100);
        file << "somebody's data";
    }
    std::filesystem::resize_file(folder / "s", kBytes);
    expect_refusal(wishes_of(folder / "s"), {folder / "s", "--format"});
    StoreWishes wishes = wishes_of(folder / "s");
    wishes.format = true;
    const auto made = open_stores(wishes);
    ASSERT_TRUE(made.ok()) << made.error().text();
    EXPECT_TRUE(made.value().stores[0].made);
}

TEST(StoresTest, AFileOfZerosGetsAStore) {
    const Folder folder;
    std::ofstream(folder / "s").close();
    std::filesystem::resize_file(folder / "s", kBytes);
    StoreWishes wishes = wishes_of(folder / "s");
    wishes.capacity_bytes = 0;
    ASSERT_TRUE(open_stores(wishes).ok());
}

TEST(StoresTest, FormatMakesAnotherFileSystem) {
    const Folder folder;
    StoreWishes wishes = wishes_of(folder / "s");
    const SipKey before = open_stores(wishes).value().cluster_key;
    wishes.format = true;
    wishes.chunk_bytes = 64U << 10U;
    const auto made = open_stores(wishes);
    ASSERT_TRUE(made.ok());
    EXPECT_NE(made.value().cluster_key, before);
    EXPECT_EQ(made.value().chunk_bytes, 64U << 10U);
}

TEST(StoresTest, StoresOfSeveralShardsStayInTheirPlaces) {
    const Folder folder;
    {
        const auto made = open_stores(wishes_of(folder / "s", 2));
        ASSERT_TRUE(made.ok());
        EXPECT_EQ(made.value().facts().daemons, 2U);
        EXPECT_EQ(made.value().facts().table, SlotTable(2));
        EXPECT_NE(made.value().stores[0].store->store_id(), made.value().stores[1].store->store_id());
    }
    ASSERT_TRUE(open_stores(wishes_of(folder / "s", 2)).ok());
    expect_refusal(wishes_of(folder / "s", 3), {"s.0", "--daemons-per-node 2"});
    EXPECT_FALSE(std::filesystem::exists(folder / "s.2"));
    expect_refusal(wishes_of(folder / "s.0"), {"--daemons-per-node 2"});

    std::filesystem::rename(folder / "s.0", folder / "kept");
    std::filesystem::rename(folder / "s.1", folder / "s.0");
    std::filesystem::rename(folder / "kept", folder / "s.1");
    expect_refusal(wishes_of(folder / "s", 2), {"s.0", "store 1"});
}

TEST(StoresTest, AStoreThatIsMissingOrAnothersIsNoNewOne) {
    const Folder folder;
    ASSERT_TRUE(open_stores(wishes_of(folder / "s", 2)).ok());
    ASSERT_TRUE(open_stores(wishes_of(folder / "other", 2)).ok());
    std::filesystem::remove(folder / "s.1");
    expect_refusal(wishes_of(folder / "s", 2), {"s.1", "is empty"});
    std::filesystem::copy_file(folder / "other.1", folder / "s.1", std::filesystem::copy_options::overwrite_existing);
    expect_refusal(wishes_of(folder / "s", 2), {"s.1", "another file system"});
    std::filesystem::remove(folder / "s.0");
    expect_refusal(wishes_of(folder / "s", 2), {"s.0", "is empty"});
}

TEST(StoresTest, StoresOfANodeKeepTheirPlaceKeyAndCluster) {
    const Folder folder;
    StoreWishes wishes = wishes_of(folder / "s", 2);
    wishes.nodes = 3;
    wishes.node = 1;
    wishes.cluster_key = SipKey{1, 2};
    SipKey placement{};
    {
        const auto made = open_stores(wishes);
        ASSERT_TRUE(made.ok()) << made.error().text();
        EXPECT_EQ(made.value().facts().daemons, 6U);
        EXPECT_EQ(made.value().cluster_key, (SipKey{1, 2}));
        placement = made.value().placement_key;
    }
    ASSERT_TRUE(open_stores(wishes).ok());
    StoreWishes other = wishes;
    other.cluster_key = SipKey{1, 3};
    expect_refusal(other, {"s.0", "another key file", "--key-file"});
    other = wishes;
    other.node = 2;
    expect_refusal(other, {"s.0", "store 1"});
    other = wishes;
    other.nodes = 2;
    expect_refusal(other, {"s.0", "6 daemons, not 4", "--nodes"});
    other = wishes_of(folder / "s", 2);
    expect_refusal(other, {"s.0", "6 daemons, not 2", "--daemons-per-node"});
    // Two nodes with one key file belong to one file system, no matter which of them made its store first.
    StoreWishes neighbour = wishes;
    neighbour.data_path = folder / "n";
    neighbour.node = 2;
    const auto next = open_stores(neighbour);
    ASSERT_TRUE(next.ok());
    EXPECT_EQ(next.value().placement_key, placement);
}

TEST(StoresTest, AnOrdinaryFileIsPersistentMemoryByItsOptionAlone) {
    const Folder folder;
    StoreWishes wishes;
    wishes.pmem_path = folder / "s";
    wishes.capacity_bytes = kBytes;
    expect_refusal(wishes, {folder / "s", "no persistent memory", "--allow-fake-pmem", "--data-path"});
    EXPECT_FALSE(std::filesystem::exists(folder / "s"));
    wishes.allow_fake_pmem = true;
    const auto made = open_stores(wishes);
    ASSERT_TRUE(made.ok()) << made.error().text();
    EXPECT_NE(made.value().stores[0].describe().find("FAKE"), std::string::npos);
}

TEST(StoresTest, APlaceThatCannotBeOpenedIsNamed) {
    const Folder folder;
    expect_refusal(wishes_of(folder / "absent/s"), {folder / "absent/s"});
    StoreWishes wishes = wishes_of(folder / "s");
    wishes.capacity_bytes = 0;
    expect_refusal(wishes, {folder / "s"});  // there is no file, and no length to make one with
    ASSERT_TRUE(open_stores(wishes_of(folder / "s")).ok());
    wishes.capacity_bytes = 2 * kBytes;
    expect_refusal(wishes, {folder / "s", "16 MiB", "32 MiB"});
    const auto open = open_stores(wishes_of(folder / "s"));
    ASSERT_TRUE(open.ok());
    expect_refusal(wishes_of(folder / "s"), {folder / "s", "in use"});
}

TEST(StoresTest, ADamagedStoreIsNoNewOne) {
    const Folder folder;
    ASSERT_TRUE(open_stores(wishes_of(folder / "s")).ok());
    {
        std::fstream file(folder / "s", std::ios::binary | std::ios::in | std::ios::out);
        for (const int copy : {0, 1}) {
            file.seekp(copy * 4096 + 40);
            file << "scribble";
        }
    }
    expect_refusal(wishes_of(folder / "s"), {folder / "s", "damaged"});
}

}  // namespace
}  // namespace cairn::fs
