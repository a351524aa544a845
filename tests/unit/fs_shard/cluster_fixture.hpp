// A client's calls to whole file systems.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/cluster_check.hpp"
#include "tests/support/shard_client.hpp"
#include "tests/support/shard_cluster.hpp"

namespace cairn::fs {

class ClusterTest : public testing::Test {
protected:
    using Letter = test::ClusterMail::Letter;
    static constexpr std::uint64_t kChunk = test::ShardCluster::kChunkBytes;
    static constexpr std::uint32_t kFile = S_IFREG | 0644;
    static constexpr std::uint32_t kDirectory = S_IFDIR | 0755;
    static constexpr std::uint32_t kBoth = kMayRead | kMayWrite;

    test::Told<WalkAnswer> create(const FileId& in, const std::string& name, std::uint32_t mode = kFile,
                                  std::uint32_t rights = 0) {
        return cluster.ask<WalkAnswer>(root, cluster.owner_of_name(in, name),
                                       CreateRequest{in, mode, rights, true, name, {}});
    }
    FileId made(const FileId& in, const std::string& name, std::uint32_t mode = kFile) {
        const auto told = create(in, name, mode);
        EXPECT_EQ(told.error, 0) << name;
        return told.answer.attributes.id;
    }
    // Looks a name up. Returns an errno. The child is `found`.
    int walk(const FileId& in, const std::string& name) {
        const auto told = cluster.ask<WalkAnswer>(root, cluster.owner_of_name(in, name), WalkRequest{in, 0, name});
        found = told.answer.attributes.id;
        return told.error;
    }
    Attributes stat(const FileId& file) {
        const auto told = cluster.ask<AttributesAnswer>(root, cluster.home_of(file), StatRequest{file});
        EXPECT_EQ(told.error, 0);
        return told.answer.attributes;
    }
    int remove(const FileId& in, const std::string& name, bool is_directory = false) {
        return cluster.ask<EmptyAnswer>(root, cluster.owner_of_name(in, name), RemoveRequest{in, is_directory, name})
            .error;
    }
    int rename(const FileId& in, const std::string& name, const FileId& to, const std::string& to_name,
               bool no_replace = false) {
        return cluster
            .ask<EmptyAnswer>(root, cluster.owner_of_name(in, name), RenameRequest{in, to, no_replace, name, to_name})
            .error;
    }
    int link(const FileId& file, const FileId& in, const std::string& name) {
        return cluster.ask<AttributesAnswer>(root, cluster.owner_of_name(in, name), LinkRequest{file, in, name}).error;
    }
    // Returns a name in a directory that this shard owns.
    std::string name_at(const FileId& in, ShardNumber shard, const std::string& begins = "n") {
        for (int i = 0;; ++i) {
            const std::string name = begins + std::to_string(i);
            if (cluster.owner_of_name(in, name) == shard && walk(in, name) == ENOENT) {
                return name;
            }
        }
    }
    // As name_at(), for a directory into which no name was put; no shard is asked.
    std::string unused_name_at(const FileId& in, ShardNumber shard) {
        for (int i = 0;; ++i) {
            if (cluster.owner_of_name(in, "u" + std::to_string(i)) == shard) {
                return "u" + std::to_string(i);
            }
        }
    }
    // Writes bytes at each chunk's beginning, as a client does: data, then the size.
    void write(const FileId& file, std::uint64_t proof, std::uint64_t offset, std::uint32_t bytes,
               std::uint64_t generation = 0) {
        const auto chunk = static_cast<std::uint32_t>(offset / test::ShardCluster::kChunkBytes);
        const Grant grant{kBoth, proof};
        const auto told = cluster.ask<DataAnswer>(root, cluster.owner_of_chunk(file, chunk),
                                                  WriteRequest{file, grant, offset, generation, bytes, 0});
        ASSERT_EQ(told.error, 0);
        if (!told.answer.is_home) {
            ASSERT_EQ(cluster
                          .ask<DataAnswer>(root, cluster.home_of(file),
                                           ExtendRequest{file, grant, offset + bytes, generation})
                          .error,
                      0);
        }
    }

    // Returns the errno of a call that is answered, or will be within some milliseconds.
    int error_of(CallToken token) {
        for (int i = 0; i != 1000 && !cluster.is_answered(token); ++i) {
            cluster.step();
        }
        if (!cluster.is_answered(token)) {
            ADD_FAILURE() << "no answer";
            return -1;
        }
        const std::vector<std::uint8_t> bytes = cluster.take_answer(token);
        AnswerHead head;
        FieldReader in(bytes);
        AnswerHead::fields(in, head);
        return head.error;
    }
    // Lets no message pass between two shards; neither of them is notified.
    void part(ShardNumber one, ShardNumber other) {
        cluster.mail().set_watch([=](const Letter& letter) {
            const bool is_theirs =
                (letter.from == one && letter.to == other) || (letter.from == other && letter.to == one);
            return letter.what != Letter::What::Message || !is_theirs;
        });
    }
    void join() { cluster.mail().set_watch({}); }
    // Notifies a shard that another one is lost.
    void lose(ShardNumber at, ShardNumber peer) { cluster.mail().post({Letter::What::Lost, peer, at, {}}, {}); }

    test::ShardCluster cluster{4, 1};
    test::ShardClient root{1};
    test::ShardClient alice{2, 1000, 1000};
    FileId found{};
};

}  // namespace cairn::fs
