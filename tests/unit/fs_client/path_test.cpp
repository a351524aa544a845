// Lookup of paths, with a fake daemon.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

// Four shards, two of them here: names and homes lie at any shard.
class Paths : public WithDaemon {
protected:
    Paths() {
        begin({.shards = 4, .local = {0, 2}});
        EXPECT_EQ(fs->mkdir("/a").wait().error, 0);
        EXPECT_EQ(fs->mkdir("/a/b").wait().error, 0);
        make("/a/b/file", "text");
    }
    int stat_error(std::string_view path) { return fs->stat(path).wait().error; }
    int lstat_error(std::string_view path) { return fs->lstat(path).wait().error; }
    std::uint32_t mode(std::string_view path) { return fs->stat(path).wait().value.mode; }
};

TEST_F(Paths, HasDotsAndSlashes) {
    for (const char* const path : {"/a/b/file", "a/b/file", "//a///b/file", "/./a/./b/./file", "/../a/b/file",
                                   "/a/../a/b/../b/file", "/../../../a/b/file", "a/b/.././b/file"}) {
        EXPECT_EQ(content(path), "text") << path;
    }
    for (const char* const path : {"/", "//", ".", "..", "/a/..", "/a/", "/a/b/.", "/a/b/..", "/a/b//"}) {
        EXPECT_TRUE(S_ISDIR(mode(path))) << path;
    }
    EXPECT_EQ(stat_error(""), ENOENT);
    EXPECT_EQ(stat_error("/none"), ENOENT);
    EXPECT_EQ(stat_error("/none/file"), ENOENT);
    EXPECT_EQ(stat_error("/a/b/file/"), ENOTDIR);
    EXPECT_EQ(stat_error("/a/b/file/."), ENOTDIR);
    EXPECT_EQ(stat_error("/a/b/file/more"), ENOTDIR);
}

TEST_F(Paths, HasNamesOf255BytesAndPathsOf4095) {
    const std::string name(255, 'n');
    make("/" + name, "long");
    EXPECT_EQ(content("/" + name), "long");
    EXPECT_EQ(stat_error("/" + name + "n"), ENAMETOOLONG);
    EXPECT_EQ(fs->open("/" + name + "n", O_CREAT | O_RDWR).wait().error, ENAMETOOLONG);
    EXPECT_EQ(fs->mkdir(name + "n/x").wait().error, ENAMETOOLONG);
    std::string path = "/a/b/file";
    path.insert(0, 4095 - path.size(), '/');
    EXPECT_EQ(stat_error(path), 0);
    EXPECT_EQ(stat_error("/" + path), ENAMETOOLONG);
    EXPECT_EQ(stat_error(std::string_view("/a\0b", 4)), EINVAL);
}

TEST_F(Paths, FollowsLinks) {
    EXPECT_EQ(fs->symlink("a/b", "/relative").wait().error, 0);
    EXPECT_EQ(fs->symlink("/a/b/file", "/a/absolute").wait().error, 0);
    EXPECT_EQ(fs->symlink("../b/./file", "/a/b/up").wait().error, 0);
    EXPECT_EQ(fs->symlink("/a/b/", "/slash").wait().error, 0);
    EXPECT_EQ(content("/relative/file"), "text");
    EXPECT_EQ(content("/a/absolute"), "text");
    EXPECT_EQ(content("/a/b/up"), "text");
    EXPECT_EQ(content("/slash/up"), "text");
    EXPECT_TRUE(S_ISDIR(mode("/slash")));
    EXPECT_TRUE(S_ISLNK(fs->lstat("/relative").wait().value.mode));
    EXPECT_TRUE(S_ISDIR(fs->lstat("/relative/").wait().value.mode)) << "a slash follows";
    EXPECT_EQ(stat_error("/a/absolute/"), ENOTDIR);
    EXPECT_EQ(content("/relative/../b/file"), "text") << "dots are of the directory, not of the name";
    EXPECT_EQ(fs->readlink("/relative").wait().value, "a/b");
    EXPECT_EQ(fs->readlink("/a").wait().error, EINVAL);
    EXPECT_EQ(fs->open("/relative", O_RDONLY | O_NOFOLLOW).wait().error, ELOOP);
}

TEST_F(Paths, FollowsLinksWhoseHomeIsElsewhere) {
    EXPECT_EQ(fs->symlink("b/file", "/a/link").wait().error, 0);
    for (int i = 0; i != 8; ++i) {
        const std::string name = "moved" + std::to_string(i);
        const std::string before = i == 0 ? "link" : "moved" + std::to_string(i - 1);
        daemon->with([&](FakeDaemon& all) {
            const FileId a = all.files.node(kFakeRoot).names.find("a")->second;
            all.files.move(a, before, a, name);
        });
        EXPECT_EQ(content("/a/" + name), "text");
        EXPECT_EQ(fs->readlink("/a/" + name).wait().value, "b/file");
    }
    EXPECT_GT(daemon->count("readlink"), 0U);
}

TEST_F(Paths, GivesUpBehindFortyLinks) {
    EXPECT_EQ(fs->symlink("/loop", "/loop").wait().error, 0);
    EXPECT_EQ(stat_error("/loop"), ELOOP);
    EXPECT_EQ(stat_error("/loop/x"), ELOOP);
    EXPECT_EQ(lstat_error("/loop"), 0);
    EXPECT_EQ(fs->open("/loop", O_CREAT | O_RDWR).wait().error, ELOOP);
    EXPECT_EQ(fs->symlink("/a", "/l0").wait().error, 0);
    for (int i = 1; i != 41; ++i) {
        EXPECT_EQ(fs->symlink("l" + std::to_string(i - 1), "/l" + std::to_string(i)).wait().error, 0);
    }
    EXPECT_EQ(stat_error("/l39"), 0);
    EXPECT_EQ(stat_error("/l40"), ELOOP);
}

TEST_F(Paths, MakesWhatALinkPointsTo) {
    EXPECT_EQ(fs->symlink("a/made", "/dangling").wait().error, 0);
    EXPECT_EQ(stat_error("/dangling"), ENOENT);
    EXPECT_EQ(fs->open("/dangling", O_CREAT | O_EXCL | O_RDWR).wait().error, EEXIST);
    make("/dangling", "new");
    EXPECT_EQ(content("/a/made"), "new");
}

TEST_F(Paths, JudgesTheLastName) {
    EXPECT_EQ(fs->mkdir("/a/new/").wait().error, 0);
    EXPECT_EQ(fs->mkdir("/").wait().error, EEXIST);
    EXPECT_EQ(fs->mkdir("/a/.").wait().error, EEXIST);
    EXPECT_EQ(fs->mkdir("/a/..").wait().error, EEXIST);
    EXPECT_EQ(fs->rmdir("/a/.").wait().error, EINVAL);
    EXPECT_EQ(fs->rmdir("/a/..").wait().error, ENOTEMPTY);
    EXPECT_EQ(fs->rmdir("/").wait().error, EBUSY);
    EXPECT_EQ(fs->rmdir("/a/new/").wait().error, 0);
    EXPECT_EQ(fs->unlink("/a/b/file/").wait().error, ENOTDIR);
    EXPECT_EQ(fs->unlink("/a/b/").wait().error, EISDIR);
    EXPECT_EQ(fs->unlink("/a/b/.").wait().error, EISDIR);
    EXPECT_EQ(fs->unlink("/a/none/").wait().error, ENOENT);
    EXPECT_EQ(fs->symlink("x", "/a/link/").wait().error, ENOENT);
    EXPECT_EQ(fs->symlink("", "/a/link").wait().error, ENOENT);
    EXPECT_EQ(fs->symlink(std::string(4096, 'x'), "/a/link").wait().error, ENAMETOOLONG);
    EXPECT_EQ(fs->link("/a/b", "/c").wait().error, EPERM);
    EXPECT_EQ(fs->rename("/a/b/file/", "/c").wait().error, ENOTDIR);
    EXPECT_EQ(fs->rename("/a/b/file", "/c/").wait().error, ENOTDIR);
    EXPECT_EQ(fs->rename("/a/.", "/c").wait().error, EBUSY);
    EXPECT_EQ(fs->rename("/a/b/", "/c/").wait().error, 0);
    EXPECT_EQ(content("/c/file"), "text");
    EXPECT_EQ(fs->open("/a/new/", O_CREAT | O_RDWR).wait().error, EISDIR);
    EXPECT_EQ(fs->open("/a/..", O_CREAT | O_RDWR).wait().error, EISDIR);
    EXPECT_EQ(fs->open("/c", O_RDWR).wait().error, EISDIR);
    EXPECT_EQ(fs->open("/c", O_RDONLY | O_CREAT).wait().error, EISDIR);
    EXPECT_EQ(fs->open("/c/file", O_RDONLY | O_DIRECTORY).wait().error, ENOTDIR);
    EXPECT_EQ(fs->opendir("/c/file").wait().error, ENOTDIR);
    daemon->with([](FakeDaemon& all) {
        for (const auto& [id, node] : all.files.nodes()) {
            EXPECT_EQ(node.open, 0) << "what was opened in vain is closed";
        }
    });
}

TEST_F(Paths, OfDirectoriesGiveHandlesThatAreNeitherReadNorWritten) {
    const Outcome<File*> opened = fs->open("/a/b", O_RDONLY | O_DIRECTORY).wait();
    ASSERT_TRUE(opened.ok());
    File& directory = *opened.value;
    std::array<std::uint8_t, 8> bytes{};
    for (const std::size_t count : {0U, 8U}) {
        EXPECT_EQ(fs->pread(directory, std::span(bytes).first(count), 0).wait().error, EISDIR) << count;
        EXPECT_EQ(fs->pread(directory, std::span(bytes).first(count), 1 << 20).wait().error, EISDIR) << count;
        EXPECT_EQ(fs->pwrite(directory, std::span(bytes).first(count), 0).wait().error, EBADF) << count;
    }
    EXPECT_EQ(fs->truncate(directory, 0).wait().error, EINVAL);
    EXPECT_TRUE(S_ISDIR(fs->stat(directory).wait().value.mode));
    EXPECT_EQ(fs->sync(directory).wait().error, 0);
    EXPECT_EQ(fs->close(directory).wait().error, 0);
    EXPECT_EQ(fs->opendir("/a/b/file").wait().error, ENOTDIR);
}

TEST_F(Paths, AreOneRequestOnceTheyAreWarm) {
    EXPECT_EQ(stat_error("/a/b/file"), 0);
    daemon->forget_asked();
    EXPECT_EQ(stat_error("/a/b/file"), 0);
    EXPECT_EQ(daemon->count("walk"), 1U);
    EXPECT_EQ(content("/a/b/file", 100), "text");
    EXPECT_EQ(daemon->count("walk"), 2U) << "that opens, too";
    EXPECT_EQ(daemon->count("open"), 0U);
}

TEST_F(Paths, AreFollowedAnewIfADirectoryHasGone) {
    EXPECT_EQ(stat_error("/a/b/file"), 0);
    const std::unique_ptr<Client> other = connect();
    EXPECT_EQ(other->rename("/a/b", "/a/old").wait().error, 0);
    EXPECT_EQ(other->mkdir("/a/b").wait().error, 0);
    EXPECT_EQ(other->open("/a/b/new", O_CREAT | O_RDWR).wait().error, 0);
    EXPECT_EQ(stat_error("/a/b/new"), 0) << "what is known of /a/b is stale";
    EXPECT_EQ(fs->unlink("/a/b/file").wait().error, ENOENT);
    EXPECT_EQ(content("/a/old/file"), "text");
    EXPECT_EQ(fs->rename("/a/old", "/a/older").wait().error, 0);
    EXPECT_EQ(stat_error("/a/old/file"), ENOENT) << "what the client did itself it knows";
}

TEST_F(Paths, TakeTheUmaskAway) {
    EXPECT_EQ(mode("/a/b"), S_IFDIR | 0755U);
    EXPECT_EQ(mode("/a/b/file"), S_IFREG | 0644U);
}

}  // namespace
}  // namespace cairn::fs
