// What holds of all shards of a file system together, when nothing is under way.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "fs/shard/attributes.hpp"
#include "tests/support/shard_cluster.hpp"

namespace cairn::test {

// Each name names a file of its kind that knows how many names it has; directories know where they are, and no
// directory is in itself; chunks are files', at their shards; no change is under way.
inline void check_cluster(ShardCluster& cluster) {
    std::map<fs::FileId, std::uint32_t> names;
    std::map<fs::FileId, fs::FileId> parents;
    std::map<fs::FileId, fs::Inode> files;
    for (fs::ShardNumber number = 0; number != cluster.size(); ++number) {
        const fs::Tables& tables = cluster.store(number).tables();
        cluster.store(number).check();
        EXPECT_EQ(tables.intents().size(), 0U) << "shard " << number;
        tables.inodes().for_each([&](const fs::FileId& id, const fs::InodeState& state) {
            EXPECT_EQ(cluster.home_of(id), number);
            files[id] = state.inode;
            if (const std::optional<fs::FileId> parent = parent_of(state); parent && id != fs::kRoot) {
                parents[id] = *parent;
            }
        });
    }
    for (fs::ShardNumber number = 0; number != cluster.size(); ++number) {
        const fs::Tables& tables = cluster.store(number).tables();
        tables.directories().for_each([&](const fs::FileId& directory, const fs::Names& all) {
            EXPECT_TRUE(files.contains(directory)) << "names of no directory";
            for (const auto& [hash, named] : all) {
                EXPECT_EQ(cluster.owner_of_name(directory, named->name()), number);
                ++names[named->state.child];
                const auto child = files.find(named->state.child);
                ASSERT_NE(child, files.end()) << named->name() << " names no file";
                EXPECT_EQ(fs::type_of(child->second.mode), fs::type_of(named->state.mode));
                if (fs::is_directory(named->state.mode)) {
                    EXPECT_EQ(parents[named->state.child], directory) << named->name();
                }
            }
        });
        tables.chunks().for_each([&](const fs::ChunkId& id, const fs::ChunkState& /*unused*/) {
            EXPECT_EQ(cluster.owner_of_chunk(id.file, id.index), number);
            const auto file = files.find(id.file);
            EXPECT_TRUE(file != files.end()) << "a chunk of no file";
            if (file != files.end()) {
                EXPECT_LT(std::uint64_t{id.index} * ShardCluster::kChunkBytes, file->second.size);
            }
        });
    }
    for (const auto& [id, inode] : files) {
        EXPECT_EQ(inode.links, id == fs::kRoot ? 1 : names[id])
            << "of a " << (fs::is_directory(inode.mode) ? "directory" : "file");
    }
    for (const auto& [id, first] : parents) {
        std::set<fs::FileId> seen{id};
        for (fs::FileId at = first; at != fs::kRoot && parents.contains(at); at = parents[at]) {
            ASSERT_TRUE(seen.insert(at).second) << "a directory is in itself";
        }
    }
}

}  // namespace cairn::test
