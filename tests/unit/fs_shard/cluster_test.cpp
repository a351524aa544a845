// Changes in which several shards take part.
#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

using test::check_cluster;

class Cluster : public ClusterTest {};

TEST_F(Cluster, MakesFilesInDirectoriesOfOtherShards) {
    const FileId directory = made(kRoot, name_at(kRoot, 1), kDirectory);
    for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
        const std::string name = name_at(directory, shard);
        const FileId file = made(directory, name);
        EXPECT_EQ(cluster.home_of(file), shard);
        EXPECT_EQ(walk(directory, name), 0);
        EXPECT_EQ(found, file);
    }
    check_cluster(cluster);
}

TEST_F(Cluster, RefusesADirectoryThatIsNotThereOrIsNone) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    EXPECT_EQ(create(file, name_at(kRoot, 1)).error, ENOTDIR);
    EXPECT_EQ(create({std::uint64_t{5} << 48U, 9}, "x").error, ENOENT);
    EXPECT_EQ(create({~std::uint64_t{0}, 9}, "x").error, ENOENT);
}

TEST_F(Cluster, AChangeOfPermissionsHoldsForAllAtOnce) {
    const FileId directory = made(kRoot, name_at(kRoot, 1), kDirectory);
    const auto creates_at = [&](ShardNumber shard) {
        const std::string name = name_at(directory, shard);
        return cluster.ask<WalkAnswer>(alice, shard, CreateRequest{directory, kFile, 0, true, name, {}}).error;
    };
    EXPECT_EQ(creates_at(2), EACCES);
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0777}).error, 0);
    EXPECT_EQ(creates_at(2), 0);
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0700}).error, 0);
    EXPECT_EQ(creates_at(2), EACCES);
    EXPECT_EQ(creates_at(1), EACCES);
}

TEST_F(Cluster, RemovesAFileWhoseHomeIsElsewhere) {
    const FileId file = made(kRoot, name_at(kRoot, 1, "a"));
    const std::string other = name_at(kRoot, 2, "b");
    const std::string first = name_at(kRoot, 1, "zz");
    ASSERT_EQ(link(file, kRoot, other), 0);
    EXPECT_EQ(stat(file).links, 2U);
    ASSERT_EQ(link(file, kRoot, first), 0);
    EXPECT_EQ(stat(file).links, 3U);
    EXPECT_EQ(link(file, kRoot, other), EEXIST);
    EXPECT_EQ(remove(kRoot, other), 0);
    EXPECT_EQ(remove(kRoot, other), ENOENT);
    EXPECT_EQ(stat(file).links, 2U);
    check_cluster(cluster);
}

TEST_F(Cluster, LinksNoDirectoryAndNothingThatIsGone) {
    const FileId directory = made(kRoot, name_at(kRoot, 1), kDirectory);
    EXPECT_EQ(link(directory, kRoot, name_at(kRoot, 2)), EPERM);
    EXPECT_EQ(link({std::uint64_t{1} << 48U, 9}, kRoot, name_at(kRoot, 2)), ENOENT);
    EXPECT_EQ(link({~std::uint64_t{0}, 9}, kRoot, name_at(kRoot, 2)), ENOENT);
    check_cluster(cluster);
}

TEST_F(Cluster, MovesAFileBetweenShards) {
    for (ShardNumber from = 0; from != 4; ++from) {
        for (ShardNumber to = 0; to != 4; ++to) {
            const std::string name = name_at(kRoot, from, "from");
            const std::string to_name = name_at(kRoot, to, "to");
            const FileId file = made(kRoot, name);
            ASSERT_EQ(rename(kRoot, name, kRoot, to_name), 0) << from << " " << to;
            EXPECT_EQ(walk(kRoot, name), ENOENT);
            EXPECT_EQ(walk(kRoot, to_name), 0);
            EXPECT_EQ(found, file);
        }
    }
    check_cluster(cluster);
}

TEST_F(Cluster, AMoveReplacesWhatIsThere) {
    const std::string name = name_at(kRoot, 1, "a");
    const std::string to = name_at(kRoot, 2, "b");
    const FileId file = made(kRoot, name);
    const FileId old = made(kRoot, to);
    EXPECT_EQ(rename(kRoot, name, kRoot, to, true), EEXIST);
    EXPECT_EQ(rename(kRoot, name, kRoot, to), 0);
    EXPECT_EQ(walk(kRoot, to), 0);
    EXPECT_EQ(found, file);
    cluster.pass(milliseconds(10));
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, cluster.home_of(old), StatRequest{old}).error, ESTALE);
    check_cluster(cluster);
}

TEST_F(Cluster, TwoNamesOfOneFileStay) {
    const std::string name = name_at(kRoot, 1, "a");
    const std::string other = name_at(kRoot, 2, "b");
    const FileId file = made(kRoot, name);
    ASSERT_EQ(link(file, kRoot, other), 0);
    EXPECT_EQ(rename(kRoot, name, kRoot, other), 0);
    EXPECT_EQ(rename(kRoot, name, kRoot, name), 0);
    EXPECT_EQ(stat(file).links, 2U);
    check_cluster(cluster);
}

TEST_F(Cluster, ADirectoryGoesOnlyIfNoShardHasNamesInIt) {
    const std::string name = name_at(kRoot, 1);
    const FileId directory = made(kRoot, name, kDirectory);
    for (ShardNumber shard = 0; shard != 4; ++shard) {
        const std::string inner = name_at(directory, shard);
        made(directory, inner);
        EXPECT_EQ(remove(kRoot, name, true), ENOTEMPTY) << shard;
        EXPECT_EQ(remove(directory, inner), 0);
    }
    EXPECT_EQ(remove(kRoot, name), EISDIR);
    EXPECT_EQ(remove(kRoot, name, true), 0);
    EXPECT_EQ(walk(kRoot, name), ENOENT);
    for (ShardNumber shard = 0; shard != 4; ++shard) {
        EXPECT_EQ(create(directory, name_at(kRoot, shard)).error, ENOENT);
    }
    check_cluster(cluster);
}

TEST_F(Cluster, ADirectoryMovesAndIsNeverInItself) {
    const std::string outer_name = name_at(kRoot, 1, "outer");
    const FileId outer = made(kRoot, outer_name, kDirectory);
    const FileId inner = made(outer, name_at(outer, 2, "inner"), kDirectory);
    const FileId innermost = made(inner, name_at(inner, 3, "innermost"), kDirectory);
    EXPECT_EQ(rename(kRoot, outer_name, innermost, name_at(innermost, 3)), EINVAL);
    EXPECT_EQ(rename(kRoot, outer_name, outer, name_at(outer, 3)), EINVAL);
    walk(outer, "inner0");
    const std::string to = name_at(kRoot, 3, "moved");
    std::string inner_name;
    for (int i = 0; inner_name.empty() || walk(outer, inner_name) != 0; ++i) {
        inner_name = "inner" + std::to_string(i);
    }
    EXPECT_EQ(rename(outer, inner_name, kRoot, to), 0);
    EXPECT_EQ(rename(kRoot, outer_name, innermost, name_at(innermost, 0)), 0);
    cluster.pass(milliseconds(10));
    check_cluster(cluster);
}

TEST_F(Cluster, AMovedDirectoryReplacesAnEmptyOneAlone) {
    const std::string name = name_at(kRoot, 1, "a");
    const std::string to = name_at(kRoot, 2, "b");
    made(kRoot, name, kDirectory);
    const FileId there = made(kRoot, to, kDirectory);
    const std::string inner = name_at(there, 3);
    made(there, inner);
    EXPECT_EQ(rename(kRoot, name, kRoot, to), ENOTEMPTY);
    EXPECT_EQ(remove(there, inner), 0);
    EXPECT_EQ(rename(kRoot, name, kRoot, to), 0);
    const std::string file = name_at(kRoot, 3, "file");
    made(kRoot, file);
    EXPECT_EQ(rename(kRoot, to, kRoot, file), ENOTDIR);
    EXPECT_EQ(rename(kRoot, file, kRoot, to), EISDIR);
    check_cluster(cluster);
}

TEST_F(Cluster, ALongFileIsCutAndGoesAtAllShards) {
    const std::string name = name_at(kRoot, 1);
    const auto file = create(kRoot, name, kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    for (std::uint64_t chunk = 0; chunk != 20; ++chunk) {
        write(id, file.answer.proof, chunk * test::ShardCluster::kChunkBytes, 5000);
    }
    EXPECT_EQ(stat(id).size, (19U * test::ShardCluster::kChunkBytes) + 5000U);
    SetAttributesRequest cut{id, {}, kSetSize};
    cut.size = (5U * test::ShardCluster::kChunkBytes) + 100;
    const auto told = cluster.ask<AttributesAnswer>(root, 1, cut);
    EXPECT_EQ(told.error, 0);
    EXPECT_EQ(told.answer.attributes.size, cut.size);
    EXPECT_EQ(told.answer.attributes.generation, 1U);
    std::size_t chunks = 0;
    for (ShardNumber shard = 0; shard != 4; ++shard) {
        chunks += cluster.store(shard).tables().chunks().size();
    }
    EXPECT_EQ(chunks, 6U);
    check_cluster(cluster);
    EXPECT_EQ(cluster.ask<EmptyAnswer>(root, 1, CloseRequest{id}).error, 0);
    EXPECT_EQ(remove(kRoot, name), 0);
    cluster.pass(milliseconds(10));
    for (ShardNumber shard = 0; shard != 4; ++shard) {
        EXPECT_EQ(cluster.store(shard).tables().chunks().size(), 0U);
    }
    check_cluster(cluster);
}

TEST_F(Cluster, TimesOfDirectoriesComeFromOtherShards) {
    const FileId directory = made(kRoot, name_at(kRoot, 1), kDirectory);
    const std::int64_t before = stat(directory).modified_ns;
    made(directory, name_at(directory, 2));
    cluster.pass(milliseconds(10));
    EXPECT_GT(stat(directory).modified_ns, before);
}

}  // namespace
}  // namespace cairn::fs
