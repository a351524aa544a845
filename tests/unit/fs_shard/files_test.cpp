// Files of a shard: stat, open, close, setattr, and files without names.
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardFiles : public ShardTest {
protected:
    int set(test::ShardClient& client, const SetAttributesRequest& request) { return error_of(client, request); }
};

constexpr FileId kNone{1, 77};

TEST_F(ShardFiles, FilesThatAreNotThereAreStale) {
    EXPECT_EQ(error_of_stat(kNone), ESTALE);
    EXPECT_EQ(open(root, kNone).error, ESTALE);
    EXPECT_EQ(close(root, kNone), EBADF);
    EXPECT_EQ(chmod(root, kNone, 0600), ESTALE);
    EXPECT_EQ(error_of(root, ExtendRequest{kNone}), ESTALE);
    EXPECT_EQ(error_of(root, ReserveRequest{kNone}), ESTALE);
}

TEST_F(ShardFiles, OpenIsJudged) {
    const FileId file = make(alice, "file", 0100640);
    const FileId directory = make(alice, "directory", 0040700);
    EXPECT_EQ(open(alice, file).error, 0);
    EXPECT_EQ(open(bob, file, kMayRead).error, EACCES);
    EXPECT_EQ(open(bob, file, kMayExecute).error, EINVAL);
    EXPECT_EQ(open(alice, directory, kMayRead).error, 0);
    EXPECT_EQ(open(alice, directory, kMayWrite).error, EISDIR);
    EXPECT_EQ(open(bob, directory, kMayRead).error, EACCES);
    EXPECT_EQ(open(root, file).error, 0);
    ASSERT_EQ(chmod(alice, file, 0666), 0);
    EXPECT_EQ(open(bob, file).error, 0);
    const auto walked = rig.ask<WalkAnswer>(bob, WalkRequest{kRoot, kMayRead, "file"});
    EXPECT_TRUE(walked.answer.is_opened);
    EXPECT_EQ(close(bob, file), 0);
    EXPECT_EQ(close(bob, file), 0);
    EXPECT_EQ(close(bob, file), EBADF);
    const auto directory_walked = rig.ask<WalkAnswer>(bob, WalkRequest{kRoot, kReadWrite, "directory"});
    EXPECT_EQ(directory_walked.error, EISDIR);
    const auto nonsense = rig.ask<WalkAnswer>(bob, WalkRequest{kRoot, 64, "file"});
    EXPECT_EQ(nonsense.error, EINVAL);
}

TEST_F(ShardFiles, ModesAreTheirOwners) {
    const FileId file = make(alice, "file");
    EXPECT_EQ(chmod(bob, file, 0777), EPERM);
    EXPECT_EQ(chmod(alice, file, 0170000U | 0612U), 0);
    EXPECT_EQ(stat(file).mode, 0100612U) << "a type stays";
    EXPECT_GT(stat(file).changed_ns, stat(file).born_ns);
    EXPECT_EQ(chmod(root, file, 04755), 0);
    EXPECT_EQ(stat(file).mode, 0104755U);
}

TEST_F(ShardFiles, OwnersAreChangedByTheSuperuser) {
    const FileId file = make(alice, "file");
    ASSERT_EQ(chmod(alice, file, 06755), 0);
    EXPECT_EQ(set(alice, {file, {}, kSetUid, 0, 1001}), EPERM);
    EXPECT_EQ(set(bob, {file, {}, kSetGid, 0, 0, 50}), EPERM);
    EXPECT_EQ(set(alice, {file, {}, kSetGid, 0, 0, 51}), EPERM);
    EXPECT_EQ(stat(file).mode, 0106755U);
    EXPECT_EQ(set(alice, {file, {}, kSetGid, 0, 0, 50}), 0);
    EXPECT_EQ(stat(file).gid, 50U);
    EXPECT_EQ(stat(file).uid, 1000U);
    EXPECT_EQ(stat(file).mode, 0100755U) << "loses its ids";
    EXPECT_EQ(set(root, {file, {}, kSetUid | kSetGid, 0, 1001, 1001}), 0);
    EXPECT_EQ(stat(file).uid, 1001U);
    EXPECT_EQ(stat(file).gid, 1001U);
    EXPECT_EQ(chmod(alice, file, 0777), EPERM);
}

TEST_F(ShardFiles, TimesAreSetByOwnersOrToNowByWriters) {
    const FileId file = make(alice, "file", 0100666);
    SetAttributesRequest times{file, {}, kSetAccessed | kSetModified};
    times.accessed_ns = -5;
    times.modified_ns = 6;
    EXPECT_EQ(set(bob, times), EPERM);
    EXPECT_EQ(set(alice, times), 0);
    EXPECT_EQ(stat(file).accessed_ns, -5);
    EXPECT_EQ(stat(file).modified_ns, 6);
    times.what = kSetModified;
    times.modified_ns = 7;
    EXPECT_EQ(set(alice, times), 0);
    EXPECT_EQ(stat(file).accessed_ns, -5);
    EXPECT_EQ(set(bob, {file, {}, kSetTimesNow}), 0);
    const std::int64_t set_at = rig.wall_ns;
    EXPECT_EQ(stat(file).accessed_ns, set_at);
    EXPECT_EQ(stat(file).modified_ns, set_at);
    ASSERT_EQ(chmod(alice, file, 0444), 0);
    EXPECT_EQ(set(bob, {file, {}, kSetTimesNow}), EACCES);
    EXPECT_EQ(set(alice, {file, {}, kSetTimesNow}), 0) << "owns it";
}

TEST_F(ShardFiles, AllOrNothingIsSet) {
    const FileId file = make(alice, "file", 0100666);
    SetAttributesRequest request{file, {}, kSetTimesNow | kSetSize};
    request.size = kLongest + 1;
    const Attributes before = stat(file);
    EXPECT_EQ(set(bob, request), EFBIG);
    request.what |= kSetMode;
    request.size = 1;
    EXPECT_EQ(set(bob, request), EPERM);
    EXPECT_EQ(set(alice, {file, {}, 128}), EINVAL);
    EXPECT_EQ(stat(file).modified_ns, before.modified_ns);
    EXPECT_EQ(stat(file).changed_ns, before.changed_ns);
    EXPECT_EQ(stat(file).size, 0U);
}

TEST_F(ShardFiles, WhoSetsNothingChangesNothing) {
    const FileId file = make(alice, "file");
    const Attributes before = stat(file);
    const auto told = rig.ask<AttributesAnswer>(bob, SetAttributesRequest{file});
    EXPECT_EQ(told.error, 0);
    EXPECT_EQ(told.answer.attributes.changed_ns, before.changed_ns);
    EXPECT_EQ(stat(file).changed_ns, before.changed_ns);
}

TEST_F(ShardFiles, SizesAreSetByWriters) {
    const Handle handle = make_open(alice, "file");
    const Handle readers = open(alice, handle.file, kMayRead);
    EXPECT_EQ(resize(bob, handle.file, 5), EACCES);
    EXPECT_EQ(resize(bob, handle.file, 5, handle.grant), EINVAL) << "is another's grant";
    EXPECT_EQ(resize(alice, handle.file, 5, readers.grant), EINVAL);
    ASSERT_EQ(chmod(alice, handle.file, 0444), 0);
    EXPECT_EQ(resize(alice, handle.file, 5), EACCES);
    EXPECT_EQ(resize(alice, handle.file, 5, handle.grant), 0) << "was opened before";
    const std::int64_t sized_at = rig.wall_ns;
    EXPECT_EQ(stat(handle.file).size, 5U);
    EXPECT_EQ(stat(handle.file).modified_ns, sized_at);
    EXPECT_EQ(resize(root, kRoot, 5), EISDIR);
    EXPECT_EQ(resize(root, make_link(alice, "link", "x"), 5), EINVAL);
    EXPECT_EQ(resize(root, handle.file, kLongest + 1), EFBIG);
    EXPECT_EQ(resize(root, handle.file, ~std::uint64_t{0}), EFBIG);
    EXPECT_EQ(resize(root, handle.file, kLongest), 0);
    EXPECT_EQ(stat(handle.file).size, kLongest);
    EXPECT_EQ(resize(root, handle.file, kLongest - 5), 0);
}

TEST_F(ShardFiles, ASetUserIdIsLostWhenAnotherWrites) {
    const Handle handle = make_open(bob, "file", 0106777);
    ASSERT_EQ(chmod(bob, handle.file, 06777), 0);
    const Handle roots = open(root, handle.file);
    EXPECT_EQ(write(root, roots, 0, "x"), 0);
    EXPECT_EQ(stat(handle.file).mode, 0106777U);
    const Handle hers = open(alice, handle.file);
    EXPECT_EQ(write(alice, hers, 0, "x"), 0);
    EXPECT_EQ(stat(handle.file).mode, 0100777U);
    ASSERT_EQ(chmod(bob, handle.file, 06777), 0);
    EXPECT_EQ(resize(alice, handle.file, 0), 0);
    EXPECT_EQ(stat(handle.file).mode, 0100777U);
}

TEST_F(ShardFiles, FilesGoWithTheirLastNameAndTheirLastUser) {
    const Handle hers = make_open(alice, "file", 0100666);
    const Handle his = open(bob, hers.file);
    ASSERT_EQ(open(bob, hers.file).error, 0);
    ASSERT_EQ(write(alice, hers, 0, "text"), 0);
    ASSERT_EQ(remove(alice, "file"), 0);
    EXPECT_EQ(stat(hers.file).links, 0U);
    EXPECT_EQ(close(alice, hers.file), 0);
    EXPECT_EQ(read(bob, his, 0, 9), "text");
    EXPECT_EQ(write(bob, his, 4, "more"), 0);
    EXPECT_EQ(close(bob, hers.file), 0);
    EXPECT_EQ(read(bob, his, 0, 9), "textmore");
    EXPECT_EQ(close(bob, hers.file), 0);
    EXPECT_EQ(error_of_stat(hers.file), ESTALE);
    EXPECT_EQ(rig.store().tables().chunks().size(), 0U);
    EXPECT_EQ(error_of(bob, ReadRequest{his.file, his.grant, 0, 4, 0}), ESTALE);
    EXPECT_EQ(error_of(bob, WriteRequest{his.file, his.grant, 0, 0, 4, 0}), ESTALE);
    EXPECT_EQ(rig.shard().counters().removed_files, 1U);
}

TEST_F(ShardFiles, WhoLeavesClosesAll) {
    std::vector<Handle> handles;
    for (int i = 0; i != 5; ++i) {
        const std::string name = std::to_string(i);
        handles.push_back(make_open(alice, name));
        ASSERT_EQ(open(alice, handles.back().file).error, 0);
        ASSERT_EQ(remove(alice, name), 0);
    }
    const Handle named = make_open(alice, "named");
    ASSERT_EQ(open(bob, handles[3].file, 0).error, 0);
    EXPECT_EQ(close(alice, handles[1].file), 0);
    EXPECT_EQ(close(alice, handles[1].file), 0);
    EXPECT_EQ(error_of_stat(handles[1].file), ESTALE);
    rig.forget(alice);
    rig.settle();
    for (const int i : {0, 1, 2, 4}) {
        EXPECT_EQ(error_of_stat(handles[static_cast<std::size_t>(i)].file), ESTALE) << i;
    }
    EXPECT_EQ(error_of_stat(handles[3].file), 0);
    EXPECT_EQ(error_of_stat(named.file), 0);
    EXPECT_EQ(close(alice, named.file), EBADF);
    EXPECT_EQ(close(bob, handles[3].file), 0);
    EXPECT_EQ(error_of_stat(handles[3].file), ESTALE);
}

// A client that knows a file's id may open it until it has gone.
TEST_F(ShardFiles, WhoOpensAFileAgainKeepsIt) {
    const Handle hers = make_open(alice, "file", 0100666);
    ASSERT_EQ(write(alice, hers, 0, "text"), 0);
    ASSERT_EQ(remove(alice, "file"), 0);
    rig.forget(alice);
    const Handle his = open(bob, hers.file);
    ASSERT_EQ(his.error, 0);
    rig.settle();
    EXPECT_EQ(read(bob, his, 0, 9), "text");
    EXPECT_EQ(close(bob, his.file), 0);
    EXPECT_EQ(error_of_stat(his.file), ESTALE);
}

TEST_F(ShardFiles, AReplacedFileThatIsOpenLivesOn) {
    const Handle old = make_open(alice, "old");
    ASSERT_EQ(write(alice, old, 0, "old"), 0);
    make(alice, "new");
    ASSERT_EQ(rename(alice, "new", "old"), 0);
    EXPECT_EQ(read(alice, old, 0, 9), "old");
    EXPECT_EQ(close(alice, old.file), 0);
    EXPECT_EQ(error_of_stat(old.file), ESTALE);
}

// A client that had it open before a restart has ten seconds to come back.
TEST_F(ShardFiles, OpenFilesLiveThroughARestart) {
    const Handle kept = make_open(alice, "kept");
    const Handle lost = make_open(bob, "lost");
    ASSERT_EQ(write(alice, kept, 0, "kept"), 0);
    ASSERT_EQ(remove(alice, "kept"), 0);
    ASSERT_EQ(remove(bob, "lost"), 0);
    rig.restart();
    EXPECT_EQ(close(alice, kept.file), EBADF) << "nobody has anything open";
    rig.pass(milliseconds(9'900));
    EXPECT_EQ(error_of_stat(lost.file), 0);
    ASSERT_EQ(open(alice, kept.file).error, 0);
    EXPECT_EQ(read(alice, kept, 0, 9), "kept") << "a grant is good for life";
    rig.pass(milliseconds(200));
    EXPECT_EQ(error_of_stat(lost.file), ESTALE);
    EXPECT_EQ(read(alice, kept, 0, 9), "kept");
    rig.pass(seconds(100));
    EXPECT_EQ(close(alice, kept.file), 0);
    EXPECT_EQ(error_of_stat(kept.file), ESTALE);
}

// The rights of an opener were judged when it opened the file.
TEST_F(ShardFiles, WhoHadAFileOpenHasItAgainWhateverItsModeIsNow) {
    const Handle kept = make_open(alice, "kept");
    const Handle reads = open(alice, kept.file, kMayRead);
    ASSERT_EQ(write(alice, kept, 0, "kept"), 0);
    ASSERT_EQ(chmod(alice, kept.file, 0), 0);
    rig.restart();
    const auto opens = [this](test::ShardClient& who, const Handle& with, std::uint32_t rights) {
        return error_of(who, OpenRequest{with.file, rights, with.grant.proof});
    };
    EXPECT_EQ(opens(alice, {kept.file, {}}, kReadWrite), EACCES);
    EXPECT_EQ(opens(alice, reads, kReadWrite), EACCES) << "it proves less";
    EXPECT_EQ(opens(alice, {kept.file, {kReadWrite, kept.grant.proof ^ 1U}}, kReadWrite), EACCES);
    EXPECT_EQ(opens(bob, kept, kReadWrite), EACCES) << "it is another client's";
    EXPECT_EQ(opens(alice, kept, kReadWrite), 0);
    ASSERT_EQ(remove(root, "kept"), 0);
    rig.pass(seconds(100));
    EXPECT_EQ(read(alice, kept, 0, 9), "kept") << "it is open";
    ASSERT_EQ(write(alice, kept, 4, "still"), 0);
    EXPECT_EQ(close(alice, kept.file), 0);
    EXPECT_EQ(error_of_stat(kept.file), ESTALE);
}

TEST_F(ShardFiles, WhatIsRemovedSoonAfterARestartWaitsForWhoHadItOpen) {
    const Handle kept = make_open(alice, "kept");
    const Handle shared = make_open(alice, "shared", kFileMode | 0666);
    const Handle lost = make_open(alice, "lost");
    ASSERT_EQ(open(bob, shared.file).error, 0);
    ASSERT_EQ(write(alice, kept, 0, "kept"), 0);
    rig.restart();
    ASSERT_EQ(remove(root, "kept"), 0);
    ASSERT_EQ(remove(root, "shared"), 0);
    ASSERT_EQ(remove(root, "lost"), 0);
    ASSERT_EQ(open(bob, shared.file).error, 0);
    EXPECT_EQ(close(bob, shared.file), 0) << "who has come back is not the last one";
    rig.pass(milliseconds(9'900));
    ASSERT_EQ(open(alice, kept.file).error, 0);
    ASSERT_EQ(open(alice, shared.file).error, 0);
    EXPECT_EQ(read(alice, kept, 0, 9), "kept");
    rig.pass(milliseconds(200));
    EXPECT_EQ(error_of_stat(lost.file), ESTALE);
    EXPECT_EQ(close(alice, kept.file), 0);
    EXPECT_EQ(error_of_stat(kept.file), ESTALE);
    EXPECT_EQ(close(alice, shared.file), 0);
    EXPECT_EQ(error_of_stat(shared.file), ESTALE);
}

}  // namespace
}  // namespace cairn::fs
