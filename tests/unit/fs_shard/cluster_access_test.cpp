// Permissions for changes at several shards, and the time for which a directory's attributes are valid at other shards.
#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

using test::check_cluster;

class ClusterAccess : public ClusterTest {
protected:
    int removes(test::ShardClient& who, const FileId& in, const std::string& name, bool is_directory = false) {
        return cluster.ask<EmptyAnswer>(who, cluster.owner_of_name(in, name), RemoveRequest{in, is_directory, name})
            .error;
    }
    int renames(test::ShardClient& who, const FileId& in, const std::string& name, const FileId& to,
                const std::string& to_name) {
        return cluster
            .ask<EmptyAnswer>(who, cluster.owner_of_name(in, name), RenameRequest{in, to, false, name, to_name})
            .error;
    }
    int creates(test::ShardClient& who, const FileId& in, const std::string& name, std::uint32_t mode = kFile) {
        return cluster.ask<WalkAnswer>(who, cluster.owner_of_name(in, name), CreateRequest{in, mode, 0, true, name, {}})
            .error;
    }
    int creates_at(ShardNumber shard, const FileId& in) { return creates(alice, in, name_at(in, shard)); }
    int sets_mode(const FileId& file, std::uint32_t mode) {
        return cluster
            .ask<AttributesAnswer>(root, cluster.home_of(file), SetAttributesRequest{file, {}, kSetMode, mode})
            .error;
    }
    // Returns the name, at `at`, of a file or directory whose home is `home`.
    std::string made_at(test::ShardClient& who, const FileId& in, ShardNumber home, ShardNumber at,
                        std::uint32_t mode = kFile) {
        const std::string first = name_at(in, home, "made");
        EXPECT_EQ(creates(who, in, first, mode), 0);
        const std::string name = name_at(in, at, "at");
        EXPECT_EQ(renames(root, in, first, in, name), 0);
        return name;
    }
    FileId open_directory(std::uint32_t mode = 0777) {
        const FileId directory = made(kRoot, name_at(kRoot, 1), kDirectory);
        EXPECT_EQ(sets_mode(directory, mode), 0);
        return directory;
    }
};

// The root directory is sticky.
TEST_F(ClusterAccess, OthersFilesStayInAStickyDirectory) {
    const std::string roots = made_at(root, kRoot, 1, 2);
    const std::string own = made_at(alice, kRoot, 1, 2);
    EXPECT_EQ(removes(alice, kRoot, roots), EPERM);
    EXPECT_EQ(renames(alice, kRoot, roots, kRoot, name_at(kRoot, 3)), EPERM);
    EXPECT_EQ(renames(alice, kRoot, own, kRoot, roots), EPERM);
    EXPECT_EQ(walk(kRoot, roots), 0);
    const std::string moved = name_at(kRoot, 3);
    EXPECT_EQ(renames(alice, kRoot, own, kRoot, moved), 0);
    EXPECT_EQ(removes(alice, kRoot, moved), 0);
    EXPECT_EQ(renames(root, kRoot, roots, kRoot, moved), 0);
    EXPECT_EQ(removes(root, kRoot, moved), 0);
    check_cluster(cluster);
}

TEST_F(ClusterAccess, OthersDirectoriesStayInAStickyDirectory) {
    const std::string roots = made_at(root, kRoot, 1, 2, kDirectory);
    const std::string own = made_at(alice, kRoot, 1, 2, kDirectory);
    EXPECT_EQ(removes(alice, kRoot, roots, true), EPERM);
    EXPECT_EQ(renames(alice, kRoot, roots, kRoot, name_at(kRoot, 3)), EPERM);
    EXPECT_EQ(renames(alice, kRoot, own, kRoot, roots), EPERM);
    EXPECT_EQ(removes(alice, kRoot, own, true), 0);
    EXPECT_EQ(removes(root, kRoot, roots, true), 0);
    check_cluster(cluster);
}

TEST_F(ClusterAccess, WhoeverOwnsAStickyDirectoryTakesOutWhatHeWants) {
    const std::string name = name_at(kRoot, 1);
    ASSERT_EQ(creates(alice, kRoot, name, S_IFDIR | 01777), 0);
    ASSERT_EQ(walk(kRoot, name), 0);
    const FileId directory = found;
    EXPECT_EQ(removes(alice, directory, made_at(root, directory, 1, 2)), 0);
    EXPECT_EQ(removes(alice, directory, made_at(root, directory, 2, 1)), 0);
    EXPECT_EQ(removes(alice, directory, made_at(root, directory, 3, 1, kDirectory), true), 0);
    check_cluster(cluster);
}

TEST_F(ClusterAccess, ADirectoryThatOneMayNotWriteToStaysInItsDirectory) {
    const FileId from = open_directory();
    const FileId to = open_directory();
    const std::string name = made_at(root, from, 1, 2, kDirectory);
    EXPECT_EQ(renames(alice, from, name, to, name_at(to, 3)), EACCES);
    const std::string other = name_at(from, 3);
    EXPECT_EQ(renames(alice, from, name, from, other), 0);
    ASSERT_EQ(walk(from, other), 0);
    ASSERT_EQ(sets_mode(found, 0777), 0);
    EXPECT_EQ(renames(alice, from, other, to, name_at(to, 2)), 0);
    cluster.pass(milliseconds(10));
    check_cluster(cluster);
}

TEST_F(ClusterAccess, NamesCannotBePutIntoADirectoryThatOneMayNotWriteTo) {
    const FileId shut = open_directory(0755);
    const std::string own = made_at(alice, kRoot, 1, 2);
    EXPECT_EQ(renames(alice, kRoot, own, shut, name_at(shut, 3)), EACCES);
    ASSERT_EQ(walk(kRoot, own), 0);
    const FileId file = found;
    const std::string name = name_at(shut, 3);
    EXPECT_EQ(cluster.ask<AttributesAnswer>(alice, 3, LinkRequest{file, shut, name}).error, EACCES);
    EXPECT_EQ(stat(file).links, 1U);
    check_cluster(cluster);
}

TEST_F(ClusterAccess, AChangeOfOwnerHoldsForAllAtOnce) {
    const FileId directory = open_directory(0700);
    EXPECT_EQ(creates_at(2, directory), EACCES);
    SetAttributesRequest chown{directory, {}, kSetUid};
    chown.uid = alice.uid;
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, chown).error, 0);
    EXPECT_EQ(creates_at(2, directory), 0);
    chown.uid = 0;
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, chown).error, 0);
    EXPECT_EQ(creates_at(2, directory), EACCES);
    chown.what = kSetGid;
    chown.gid = alice.gid;
    EXPECT_EQ(sets_mode(directory, 0770), 0);
    EXPECT_EQ(creates_at(2, directory), EACCES);
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, chown).error, 0);
    EXPECT_EQ(creates_at(2, directory), 0);
}

// A shard that has borrowed attributes does not get the recall. The home waits, and the borrower asks again in time.
TEST_F(ClusterAccess, AttributesEndWhereNobodyHearsOfTheirChange) {
    const FileId directory = open_directory();
    ASSERT_EQ(creates_at(2, directory), 0);
    const std::string name = name_at(directory, 2);
    part(1, 2);
    const CallToken changed = cluster.send(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0700});
    cluster.pass(milliseconds(1500));
    EXPECT_FALSE(cluster.is_answered(changed)) << "while its attributes are lent";
    cluster.pass(seconds(12));
    ASSERT_TRUE(cluster.is_answered(changed));
    const CallToken made = cluster.send(alice, 2, CreateRequest{directory, kFile, 0, true, name, {}});
    cluster.pass(seconds(12));
    ASSERT_TRUE(cluster.is_answered(made));
    EXPECT_EQ(error_of(made), EIO);
    join();
    cluster.pass(seconds(1));
    EXPECT_EQ(creates_at(2, directory), EACCES);
}

TEST_F(ClusterAccess, ALostBorrowersTermIsWaitedFor) {
    const FileId directory = open_directory();
    ASSERT_EQ(creates_at(2, directory), 0);
    const std::string name = name_at(directory, 2);
    part(1, 2);
    lose(1, 2);  // the other one does not know
    cluster.step();
    const CallToken changed = cluster.send(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0700});
    cluster.pass(milliseconds(1900));
    EXPECT_FALSE(cluster.is_answered(changed)) << "while its attributes are lent";
    cluster.pass(milliseconds(400));
    ASSERT_TRUE(cluster.is_answered(changed));
    const CallToken made = cluster.send(alice, 2, CreateRequest{directory, kFile, 0, true, name, {}});
    cluster.pass(seconds(12));
    ASSERT_TRUE(cluster.is_answered(made));
    EXPECT_EQ(error_of(made), EIO);
}

TEST_F(ClusterAccess, WhatAnEarlierLifeLentIsRecalled) {
    const FileId directory = open_directory();
    ASSERT_EQ(creates_at(2, directory), 0);
    const std::string name = name_at(directory, 2);
    const std::string empty = name_at(kRoot, 1);
    (void)made(kRoot, empty, kDirectory);
    cluster.end(1);
    cluster.restart(1);
    cluster.step();
    const CallToken changed = cluster.send(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0700});
    const CallToken removed = cluster.send(root, 1, RemoveRequest{kRoot, true, empty}, 1);
    cluster.pass(milliseconds(100));
    ASSERT_TRUE(cluster.is_answered(changed) && cluster.is_answered(removed)) << "the term is not waited for";
    EXPECT_EQ(error_of(changed), 0);
    EXPECT_EQ(error_of(removed), 0);
    EXPECT_EQ(creates(alice, directory, name), EACCES);
}

TEST_F(ClusterAccess, WhatAnEarlierLifeLentIsWaitedForWhereItCannotBeRecalled) {
    const FileId directory = open_directory();
    ASSERT_EQ(creates_at(2, directory), 0);
    const std::string name = name_at(directory, 2);
    cluster.end(1);
    cluster.restart(1);
    cluster.step();
    part(1, 2);
    lose(1, 2);
    cluster.step();
    const CallToken changed = cluster.send(root, 1, SetAttributesRequest{directory, {}, kSetMode, 0700});
    cluster.pass(milliseconds(100));
    EXPECT_FALSE(cluster.is_answered(changed));
    EXPECT_EQ(creates(alice, directory, name), 0) << "as long as the change is not made";
    cluster.pass(milliseconds(2500));
    ASSERT_TRUE(cluster.is_answered(changed));
}

TEST_F(ClusterAccess, WhoBorrowsAgainHasANewTerm) {
    const FileId directory = open_directory();
    ASSERT_EQ(creates_at(2, directory), 0);
    cluster.pass(milliseconds(2100));
    ASSERT_EQ(creates_at(2, directory), 0);
    cluster.pass(milliseconds(300));
    ASSERT_EQ(sets_mode(directory, 0700), 0);
    EXPECT_EQ(creates_at(2, directory), EACCES);
}

TEST_F(ClusterAccess, ARemovedDirectoryThatIsOpenTakesNoNames) {
    const std::string name = name_at(kRoot, 2);
    const FileId directory = made(kRoot, name, kDirectory);
    ASSERT_EQ(cluster.ask<OpenAnswer>(alice, 2, OpenRequest{directory, kMayRead}).error, 0);
    ASSERT_EQ(removes(root, kRoot, name, true), 0);
    for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
        EXPECT_EQ(creates(root, directory, name_at(kRoot, shard)), ENOENT) << shard;
        EXPECT_EQ(error_of(cluster.send(alice, shard, ListRequest{directory, 0})), 0) << shard;
    }
    EXPECT_EQ(cluster.ask<EmptyAnswer>(alice, 2, CloseRequest{directory}).error, 0);
    check_cluster(cluster);
}

}  // namespace
}  // namespace cairn::fs
