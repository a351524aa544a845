// Names of a shard: walk, create, remove, rename, link, readlink, and the refusals that POSIX requires.
#include "fs/rules/names.hpp"
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardNames : public ShardTest {
protected:
    int create(test::ShardClient& client, std::string_view name, std::uint32_t mode = kFileMode,
               const FileId& directory = kRoot, std::string_view target = {}) {
        return error_of(client, CreateRequest{directory, mode, 0, true, name, target});
    }
    int walk_error(test::ShardClient& client, const FileId& directory, std::string_view name,
                   std::uint32_t rights = 0) {
        return error_of(client, WalkRequest{directory, rights, name});
    }
    int link(test::ShardClient& client, const FileId& file, std::string_view name, const FileId& directory = kRoot) {
        return error_of(client, LinkRequest{file, directory, name});
    }
};

TEST_F(ShardNames, TheRootIsThereAndEverybodysAsTmpIs) {
    const Attributes there = stat(kRoot);
    EXPECT_EQ(there.mode, 0041777U);
    EXPECT_EQ(there.links, 1U);
    EXPECT_EQ(there.born_ns, rig.wall_ns - 1000);
    rig.restart();
    EXPECT_EQ(stat(kRoot).born_ns, there.born_ns) << "is made once";
}

TEST_F(ShardNames, FilesAreTheirMakers) {
    const auto told = rig.ask<WalkAnswer>(alice, CreateRequest{kRoot, 0100640, kReadWrite, true, "file", {}});
    ASSERT_EQ(told.error, 0);
    EXPECT_TRUE(told.answer.was_made && told.answer.is_home && told.answer.is_opened);
    const Attributes& made = told.answer.attributes;
    EXPECT_EQ(made.mode, 0100640U);
    EXPECT_EQ(made.uid, 1000U);
    EXPECT_EQ(made.gid, 1000U);
    EXPECT_EQ(made.links, 1U);
    EXPECT_EQ(made.size, 0U);
    EXPECT_EQ(made.born_ns, rig.wall_ns);
    EXPECT_EQ(made.modified_ns, rig.wall_ns);
    const auto walked = rig.ask<WalkAnswer>(bob, WalkRequest{kRoot, 0, "file"});
    EXPECT_EQ(walked.answer.attributes.id, made.id);
    EXPECT_FALSE(walked.answer.was_made || walked.answer.is_opened);
    EXPECT_EQ(walk_error(bob, kRoot, "file", kMayRead), EACCES);
    EXPECT_EQ(close(alice, made.id), 0);
    EXPECT_EQ(close(alice, made.id), EBADF);
}

TEST_F(ShardNames, WhoMakesAFileHasItOpenWhateverItsMode) {
    const auto told = rig.ask<WalkAnswer>(alice, CreateRequest{kRoot, 0100000, kReadWrite, true, "file", {}});
    ASSERT_EQ(told.error, 0);
    const Handle handle{told.answer.attributes.id, {kReadWrite, told.answer.proof}};
    EXPECT_EQ(write(alice, handle, 0, "text"), 0);
    EXPECT_EQ(read(alice, handle, 0, 100), "text");
    EXPECT_EQ(open(alice, handle.file).error, EACCES);
}

TEST_F(ShardNames, NamesAreJudged) {
    const std::string longest(kLongestName, 'x');
    EXPECT_EQ(create(alice, longest), 0);
    EXPECT_EQ(walk_error(alice, kRoot, longest), 0);
    for (const auto& [name, error] : std::map<std::string, int>{{"", ENOENT},
                                                                {longest + "x", ENAMETOOLONG},
                                                                {".", EINVAL},
                                                                {"..", EINVAL},
                                                                {"a/b", EINVAL},
                                                                {std::string("a\0b", 3), EINVAL}}) {
        SCOPED_TRACE(name);
        EXPECT_EQ(create(alice, name), error);
        EXPECT_EQ(walk_error(alice, kRoot, name), error);
        EXPECT_EQ(remove(alice, name), error);
        EXPECT_EQ(rename(alice, name, "to"), error);
        EXPECT_EQ(rename(alice, longest, name), error);
        EXPECT_EQ(link(alice, kRoot, name), error);
    }
    EXPECT_EQ(rig.list(root, kRoot).size(), 1U);
}

TEST_F(ShardNames, DirectoriesAreJudged) {
    const FileId file = make(alice, "file");
    const FileId closed = make(alice, "closed", 0040700);
    make(alice, "inner", kFileMode, closed);
    const FileId gone = make(alice, "gone", kDirectoryMode);
    ASSERT_EQ(remove(alice, "gone", true), 0);
    const std::map<FileId, int> wanted{{file, ENOTDIR}, {closed, EACCES}, {gone, ENOENT}, {{1, 77}, ENOENT}};
    for (const auto& [directory, error] : wanted) {
        EXPECT_EQ(walk_error(bob, directory, "inner"), error);
        EXPECT_EQ(create(bob, "inner", kFileMode, directory), error);
        EXPECT_EQ(remove(bob, "inner", false, directory), error);
        EXPECT_EQ(rename(bob, "inner", "x", false, directory, kRoot), error);
        EXPECT_EQ(rename(bob, "file", "inner", false, kRoot, directory), error);
        EXPECT_EQ(link(bob, file, "inner", directory), error);
        EXPECT_EQ(error_of(bob, ListRequest{directory, 0}), error);
    }
    EXPECT_EQ(walk_error(root, closed, "inner"), 0);
}

TEST_F(ShardNames, ADirectoryThatMayBeReadOrSearchedOnly) {
    const FileId readable = make(alice, "readable", 0040744);
    const FileId searchable = make(alice, "searchable", 0040711);
    make(alice, "inner", kFileMode, readable);
    make(alice, "inner", kFileMode, searchable);
    EXPECT_EQ(error_of(bob, ListRequest{readable, 0}), 0);
    EXPECT_EQ(walk_error(bob, readable, "inner"), EACCES);
    EXPECT_EQ(error_of(bob, ListRequest{searchable, 0}), EACCES);
    EXPECT_EQ(walk_error(bob, searchable, "inner"), 0);
    EXPECT_EQ(create(bob, "mine", kFileMode, searchable), EACCES);
    EXPECT_EQ(create(bob, "inner", kFileMode, searchable), EEXIST);
    EXPECT_EQ(remove(bob, "inner", false, searchable), EACCES);
}

TEST_F(ShardNames, CreateIsExclusiveOrNot) {
    const auto make_or_open = [this](test::ShardClient& client, std::string_view name, std::uint32_t rights) {
        return rig.ask<WalkAnswer>(client, CreateRequest{kRoot, 0100600, rights, false, name, {}});
    };
    const auto made = make_or_open(alice, "file", kReadWrite);
    EXPECT_TRUE(made.answer.was_made && made.answer.is_opened);
    EXPECT_EQ(create(alice, "file"), EEXIST);
    const auto opened = make_or_open(alice, "file", kMayRead);
    EXPECT_EQ(opened.error, 0);
    EXPECT_TRUE(!opened.answer.was_made && opened.answer.is_opened);
    EXPECT_EQ(opened.answer.attributes.id, made.answer.attributes.id);
    EXPECT_EQ(make_or_open(bob, "file", kMayRead).error, EACCES);
    make_link(alice, "link", "file");
    const auto link = make_or_open(alice, "link", kMayRead);
    EXPECT_EQ(link.answer.target, "file");
    EXPECT_FALSE(link.answer.is_opened);
    make(alice, "directory", kDirectoryMode);
    EXPECT_EQ(make_or_open(alice, "directory", kMayRead).error, 0);
    EXPECT_EQ(make_or_open(alice, "directory", kReadWrite).error, EISDIR);
}

TEST_F(ShardNames, OnlyFilesDirectoriesAndLinksAreMade) {
    for (const std::uint32_t type : {0U, 0010000U, 0020000U, 0060000U, 0140000U}) {
        EXPECT_EQ(create(root, "x", type | 0644U), EINVAL) << std::oct << type;
    }
    EXPECT_EQ(create(root, "x", kFileMode | 1U << 16U), EINVAL);
    EXPECT_EQ(create(root, "x", 0120777U | 1U << 31U, kRoot, "target"), EINVAL);
    EXPECT_EQ(create(root, "x", kFileMode, kRoot, "target"), EINVAL);
    EXPECT_EQ(create(root, "x", 0120777, kRoot, ""), ENOENT);
    EXPECT_EQ(create(root, "x", 0120777, kRoot, std::string(kLongestPath + 1, 't')), ENAMETOOLONG);
    EXPECT_EQ(create(root, "x", 0120777, kRoot, std::string(kLongestPath, 't')), 0);
    EXPECT_EQ(error_of(root, CreateRequest{kRoot, kDirectoryMode, kMayWrite, true, "y", {}}), EINVAL);
    EXPECT_EQ(error_of(root, CreateRequest{kRoot, kFileMode, kMayExecute, true, "y", {}}), EINVAL);
    EXPECT_EQ(rig.list(root, kRoot).size(), 1U);
}

TEST_F(ShardNames, ADirectorysGroupIsHandedDown) {
    const FileId shared = make(alice, "shared", 0042777);
    ASSERT_EQ(error_of(root, SetAttributesRequest{shared, {}, kSetGid, 0, 0, 50}), 0);
    EXPECT_EQ(stat(shared).mode, 0042777U);
    EXPECT_EQ(stat(make(bob, "file", 0102644, shared)).gid, 50U);
    EXPECT_EQ(stat(walk("file", shared)).mode, 0102644U);
    const Attributes inner = stat(make(bob, "inner", 0040755, shared));
    EXPECT_EQ(inner.gid, 50U);
    EXPECT_EQ(inner.mode, 0042755U);
    test::ShardClient eve{9, 1002, 1002};
    EXPECT_EQ(stat(make(eve, "eves", 0102755, shared)).mode, 0100755U) << "is not of the group";
}

TEST_F(ShardNames, LinksSayWhereTheyPoint) {
    const std::string target(kLongestPath, 't');
    const FileId link = make_link(alice, "link", target);
    const auto told = rig.ask<TextAnswer>(bob, ReadLinkRequest{link});
    EXPECT_EQ(told.answer.text, target);
    EXPECT_EQ(stat(link).size, target.size());
    EXPECT_EQ(rig.ask<WalkAnswer>(bob, WalkRequest{kRoot, kMayRead, "link"}).answer.target, target);
    EXPECT_EQ(open(bob, link, kMayRead).error, ELOOP);
    EXPECT_EQ(error_of(bob, ReadLinkRequest{make(alice, "file")}), EINVAL);
    EXPECT_EQ(error_of(bob, ReadLinkRequest{{1, 99}}), ESTALE);
    EXPECT_EQ(remove(bob, "link"), EPERM) << "the root is sticky";
    EXPECT_EQ(remove(alice, "link"), 0);
    EXPECT_EQ(error_of_stat(link), ESTALE);
}

TEST_F(ShardNames, RemovalIsJudged) {
    const FileId directory = make(alice, "directory", 0040777);
    make(alice, "file", kFileMode, directory);
    EXPECT_EQ(remove(alice, "none"), ENOENT);
    EXPECT_EQ(remove(alice, "directory"), EISDIR);
    EXPECT_EQ(remove(alice, "directory", true), ENOTEMPTY);
    EXPECT_EQ(remove(bob, "file", true, directory), ENOTDIR);
    EXPECT_EQ(remove(bob, "directory", true), EPERM) << "the root is sticky";
    EXPECT_EQ(remove(bob, "file", false, directory), 0) << "this one is not";
    make(alice, "file", kFileMode, directory);
    ASSERT_EQ(chmod(alice, directory, 01777), 0);
    EXPECT_EQ(remove(bob, "file", false, directory), EPERM);
    EXPECT_EQ(rename(bob, "file", "other", false, directory, directory), EPERM);
    make(bob, "bobs", kFileMode, directory);
    EXPECT_EQ(remove(alice, "bobs", false, directory), 0) << "it is her directory";
    EXPECT_EQ(remove(root, "file", false, directory), 0);
    EXPECT_EQ(remove(alice, "directory", true), 0);
    EXPECT_EQ(error_of_stat(directory), ESTALE);
}

TEST_F(ShardNames, HardLinksAreOneFile) {
    const FileId file = make(alice, "one");
    const auto told = rig.ask<AttributesAnswer>(bob, LinkRequest{file, kRoot, "two"});
    EXPECT_EQ(told.error, 0);
    EXPECT_EQ(told.answer.attributes.links, 2U);
    EXPECT_EQ(told.answer.attributes.changed_ns, rig.wall_ns);
    EXPECT_EQ(walk("two"), file);
    EXPECT_EQ(link(alice, file, "two"), EEXIST);
    EXPECT_EQ(link(alice, {1, 77}, "three"), ENOENT);
    EXPECT_EQ(link(alice, make(alice, "directory", kDirectoryMode), "three"), EPERM);
    EXPECT_EQ(rename(alice, "one", "two"), 0) << "does nothing";
    EXPECT_EQ(rename(alice, "one", "two", true), EEXIST);
    EXPECT_EQ(remove(alice, "one"), 0);
    EXPECT_EQ(stat(file).links, 1U);
    const Handle handle = open(alice, file);
    EXPECT_EQ(remove(alice, "two"), 0);
    EXPECT_EQ(stat(file).links, 0U);
    EXPECT_EQ(link(alice, file, "three"), ENOENT) << "no name is found for what has none";
    EXPECT_EQ(close(alice, handle.file), 0);
    EXPECT_EQ(error_of_stat(file), ESTALE);
}

TEST_F(ShardNames, RenameMovesAndReplaces) {
    const FileId one = make(alice, "one");
    const FileId two = make(alice, "two");
    const FileId directory = make(alice, "directory", kDirectoryMode);
    EXPECT_EQ(rename(alice, "none", "x"), ENOENT);
    EXPECT_EQ(rename(alice, "one", "two", true), EEXIST);
    EXPECT_EQ(rename(alice, "one", "one"), 0);
    EXPECT_EQ(rename(alice, "one", "two"), 0);
    const std::int64_t renamed_at = rig.wall_ns;
    EXPECT_EQ(walk("two"), one);
    EXPECT_EQ(error_of_stat(two), ESTALE);
    EXPECT_EQ(walk("one"), FileId{});
    EXPECT_EQ(stat(one).changed_ns, renamed_at);
    EXPECT_EQ(rename(alice, "two", "inner", true, kRoot, directory), 0);
    EXPECT_EQ(walk("inner", directory), one);
    EXPECT_EQ(rename(alice, "inner", "directory", false, directory), EISDIR);
    EXPECT_EQ(rename(bob, "inner", "mine", false, directory, kRoot), EACCES);
    rig.restart();
    EXPECT_EQ(walk("inner", directory), one);
    EXPECT_EQ(rig.list(root, kRoot).size(), 1U);
}

TEST_F(ShardNames, RenameOfDirectories) {
    const FileId outer = make(alice, "outer", kDirectoryMode);
    const FileId middle = make(alice, "middle", kDirectoryMode, outer);
    const FileId inner = make(alice, "inner", kDirectoryMode, middle);
    const FileId other = make(alice, "other", kDirectoryMode);
    make(alice, "file");
    EXPECT_EQ(rename(alice, "outer", "x", false, kRoot, outer), EINVAL);
    EXPECT_EQ(rename(alice, "outer", "x", false, kRoot, middle), EINVAL);
    EXPECT_EQ(rename(alice, "outer", "x", false, kRoot, inner), EINVAL);
    EXPECT_EQ(rename(alice, "inner", "outer", false, middle, kRoot), ENOTEMPTY);
    EXPECT_EQ(rename(alice, "outer", "file"), ENOTDIR);
    EXPECT_EQ(rename(alice, "file", "outer"), EISDIR);
    EXPECT_EQ(rename(alice, "middle", "other", false, outer, kRoot), 0) << "over an empty one";
    EXPECT_EQ(error_of_stat(other), ESTALE);
    EXPECT_EQ(walk("other"), middle);
    EXPECT_EQ(rename(alice, "outer", "x", false, kRoot, inner), 0) << "inner is not within outer any more";
    EXPECT_EQ(rename(alice, "other", "y", false, kRoot, outer), EINVAL) << "but outer is within middle";
    rig.restart();
    EXPECT_EQ(rename(alice, "other", "y", false, kRoot, outer), EINVAL);
}

// Its ".." changes.
TEST_F(ShardNames, AMovedDirectoryMayBeWritten) {
    const FileId open_to_all = make(alice, "open", 0040777);
    make(alice, "hers", 0040755, open_to_all);
    make(bob, "his", 0040555, open_to_all);
    EXPECT_EQ(rename(bob, "hers", "renamed", false, open_to_all, open_to_all), 0);
    EXPECT_EQ(rename(bob, "renamed", "moved", false, open_to_all, kRoot), EACCES);
    EXPECT_EQ(rename(bob, "his", "moved", false, open_to_all, kRoot), EACCES);
    EXPECT_EQ(rename(alice, "renamed", "moved", false, open_to_all, kRoot), 0);
}

TEST_F(ShardNames, OpenDirectoriesOutliveTheirNames) {
    const FileId directory = make(alice, "directory", kDirectoryMode);
    ASSERT_EQ(open(alice, directory, kMayRead).error, 0);
    ASSERT_EQ(remove(alice, "directory", true), 0);
    EXPECT_EQ(stat(directory).links, 0U);
    EXPECT_TRUE(rig.list(alice, directory).empty());
    EXPECT_EQ(create(alice, "x", kFileMode, directory), ENOENT);
    EXPECT_EQ(close(alice, directory), 0);
    EXPECT_EQ(error_of_stat(directory), ESTALE);
}

}  // namespace
}  // namespace cairn::fs
