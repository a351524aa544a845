// Times of a shard's directories: they change with the names in them, and are written once a second.
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardTimes : public ShardTest {};

TEST_F(ShardTimes, DirectoriesTellWhenTheirNamesChanged) {
    const FileId one = make(alice, "one", kDirectoryMode);
    const FileId two = make(alice, "two", kDirectoryMode);
    const auto is_touched = [&](const FileId& directory) {
        const std::int64_t at = rig.wall_ns;
        const Attributes attributes = stat(directory);
        return attributes.modified_ns == at && attributes.changed_ns == at;
    };
    const FileId file = make(alice, "file", kFileMode, one);
    EXPECT_TRUE(is_touched(one));
    ASSERT_EQ(error_of(alice, LinkRequest{file, one, "link"}), 0);
    EXPECT_TRUE(is_touched(one));
    ASSERT_EQ(rename(alice, "link", "moved", false, one, two), 0);
    const std::int64_t moved_at = rig.wall_ns;
    EXPECT_EQ(stat(one).modified_ns, moved_at);
    EXPECT_EQ(stat(two).modified_ns, moved_at);
    ASSERT_EQ(remove(alice, "moved", false, two), 0);
    EXPECT_TRUE(is_touched(two));
    EXPECT_EQ(stat(two).accessed_ns, stat(two).born_ns);
    EXPECT_EQ(rig.ask<WalkAnswer>(alice, WalkRequest{kRoot, 0, "two"}).answer.attributes.modified_ns,
              stat(two).modified_ns);
}

TEST_F(ShardTimes, DirectoriesTimesAreWrittenOnceASecond) {
    const FileId directory = make(alice, "directory", kDirectoryMode);
    const std::int64_t born = stat(directory).born_ns;
    make(alice, "file", kFileMode, directory);
    const std::int64_t touched = stat(directory).modified_ns;
    ASSERT_GT(touched, born);
    rig.restart();
    EXPECT_EQ(stat(directory).modified_ns, born) << "the last second may be lost";
    make(alice, "other", kFileMode, directory);
    const std::int64_t touched_again = stat(directory).modified_ns;
    EXPECT_LE(rig.shard().next_deadline(), rig.now + seconds(1));
    rig.pass(milliseconds(1'001));
    rig.restart();
    EXPECT_EQ(stat(directory).modified_ns, touched_again);
    EXPECT_EQ(stat(directory).changed_ns, touched_again);
    make(alice, "third", kFileMode, directory);
    const std::int64_t last = stat(directory).modified_ns;
    EXPECT_TRUE(rig.shard().settle().ok());
    rig.restart();
    EXPECT_EQ(stat(directory).modified_ns, last);
}

// A program that unpacks an archive sets them once all names are there.
TEST_F(ShardTimes, DirectoriesTimesThatWereSetStay) {
    const FileId directory = make(alice, "directory", kDirectoryMode);
    make(alice, "file", kFileMode, directory);
    SetAttributesRequest times{directory, {}, kSetAccessed | kSetModified};
    times.accessed_ns = 5;
    times.modified_ns = 6;
    ASSERT_EQ(error_of(alice, times), 0);
    const std::int64_t set_at = rig.wall_ns;
    const auto check = [&] {
        EXPECT_EQ(stat(directory).accessed_ns, 5);
        EXPECT_EQ(stat(directory).modified_ns, 6);
        EXPECT_EQ(stat(directory).changed_ns, set_at);
    };
    check();
    rig.pass(seconds(3));
    check();
    rig.restart();
    check();
    // A future time is as good as any other.
    times.modified_ns = rig.wall_ns + seconds(100'000).ns;
    ASSERT_EQ(error_of(alice, times), 0);
    make(alice, "other", kFileMode, directory);
    const std::int64_t made_at = rig.wall_ns;
    EXPECT_EQ(stat(directory).modified_ns, made_at);
    ASSERT_EQ(chmod(alice, directory, 0700), 0);
    const std::int64_t changed_at = rig.wall_ns;
    EXPECT_EQ(stat(directory).modified_ns, made_at);
    EXPECT_EQ(stat(directory).changed_ns, changed_at);
    rig.pass(seconds(3));
    rig.restart();
    EXPECT_EQ(stat(directory).modified_ns, made_at);
    EXPECT_EQ(stat(directory).changed_ns, changed_at);
}

TEST_F(ShardTimes, TimesOfManyDirectoriesAreWrittenToo) {
    std::map<FileId, std::int64_t> touched;
    for (int i = 0; i != 500; ++i) {
        const FileId directory = make(alice, std::to_string(i), kDirectoryMode);
        make(alice, "file", kFileMode, directory);
        touched[directory] = rig.wall_ns;
    }
    rig.pass(milliseconds(1'500));
    rig.restart();
    for (const auto& [directory, at] : touched) {
        EXPECT_EQ(stat(directory).modified_ns, at);
    }
}

}  // namespace
}  // namespace cairn::fs
