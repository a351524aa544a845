// The faults that fsck finds: each one alone, in an otherwise consistent file system.
#include "apps/fs/judge.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

namespace cairn::fstool {
namespace {

using fs::FileId;
using fs::ShardNumber;

constexpr std::uint32_t kFile = S_IFREG | 0644;
constexpr std::uint32_t kDirectory = S_IFDIR | 0755;
constexpr std::uint32_t kChunkBytes = 64U << 10U;
constexpr FileId kRoot{1, 1};

fs::Welcome welcome() {
    fs::Welcome welcome;
    welcome.root = kRoot;
    welcome.chunk_bytes = kChunkBytes;
    welcome.daemons = 2;
    welcome.placement_key = 5;
    welcome.local = {0, 1};
    welcome.table.emplace(2);
    return welcome;
}

class JudgeTest : public testing::Test {
protected:
    JudgeTest() {
        add_file(kRoot, kDirectory, 1, 0);
        add_file(directory, kDirectory, 1, 0);
        add_file(inner, kDirectory, 1, 0);
        add_file(file, kFile, 2, 3 * kChunkBytes);
        counted.files[1].facts.parent = kRoot;
        counted.files[2].facts.parent = directory;
        add_name(kRoot, "directory", directory, S_IFDIR);
        add_name(directory, "inner", inner, S_IFDIR);
        add_name(inner, "file", file, S_IFREG);
        add_name(kRoot, "link", file, S_IFREG);
        add_chunk(file, 0);
        add_chunk(file, 2);
    }

    ShardNumber home(const FileId& id) const { return view.owner(id.home_slot()); }
    void add_file(const FileId& id, std::uint32_t mode, std::uint32_t links, std::uint64_t size) {
        counted.files.push_back({{id, {}, mode, links, size, false}, home(id)});
    }
    void add_name(const FileId& in, const std::string& name, const FileId& child, std::uint32_t type) {
        counted.names.push_back({{in, child, type, {}}, name, view.owner(view.slot_of(in, name))});
    }
    void add_chunk(const FileId& id, std::uint32_t index) {
        counted.chunks.push_back({{id, index, 16}, view.owner(fs::Placement::slot_of_chunk(id.home_slot(), index))});
    }
    // Returns all findings. Finding them again gives the same keys.
    std::string found() {
        const std::vector<Finding> findings = judge(counted, view);
        const std::vector<Finding> again = judge(counted, view);
        std::string text;
        for (std::size_t i = 0; i != findings.size(); ++i) {
            EXPECT_EQ(findings[i].key, again[i].key);
            EXPECT_FALSE(findings[i].key.empty());
            text += findings[i].text + '\n';
        }
        return text;
    }
    static std::string id_text(const FileId& id) { return text_of(id); }

    const fs::View view{1, welcome()};
    const FileId directory{std::uint64_t{7} << 48U | 1, 11};
    const FileId inner{std::uint64_t{8} << 48U | 2, 12};
    const FileId file{std::uint64_t{9} << 48U | 3, 13};
    Counted counted;
};

TEST_F(JudgeTest, NothingIsWrongWithASoundOne) {
    EXPECT_EQ(found(), "");
}

TEST_F(JudgeTest, ANameOfNoFile) {
    add_name(inner, "gone", {5, 5}, S_IFREG);
    EXPECT_EQ(found(), "/directory/inner/gone: names a file that is not there, " + id_text({5, 5}) + "\n");
}

TEST_F(JudgeTest, ANameInNoDirectory) {
    add_name(file, "odd", file, S_IFREG);
    counted.files[3].facts.links = 3;
    EXPECT_EQ(found(), "/directory/inner/file/odd: a name in no directory\n");
}

TEST_F(JudgeTest, AFileOfNoName) {
    add_file({5, 5}, kFile, 0, 7);
    EXPECT_EQ(found(), "file " + id_text({5, 5}) + ": a file of 7 bytes without a name that nobody has open\n");
    counted.files.back().facts.is_open = true;
    EXPECT_EQ(found(), "");
    counted.files.back().facts.links = 1;
    EXPECT_EQ(found(), "file " + id_text({5, 5}) + ": a file with 0 names that counts 1\n");
}

TEST_F(JudgeTest, AWrongCount) {
    counted.files[3].facts.links = 1;
    EXPECT_EQ(found(), "/directory/inner/file: a file with 2 names that counts 1\n");
    counted.files[3].facts.links = 2;
    counted.files[1].facts.links = 2;
    EXPECT_EQ(found(), "/directory: a directory with 1 names that counts 2\n");
}

TEST_F(JudgeTest, AWrongType) {
    counted.names[3].facts.mode = S_IFDIR;
    EXPECT_EQ(found(), "/link: named as a directory, and is a file\n");
}

TEST_F(JudgeTest, AWrongParent) {
    counted.files[2].facts.parent = kRoot;
    EXPECT_EQ(found(), "/directory/inner: a directory that believes to be in /\n");
}

TEST_F(JudgeTest, ADirectoryInItself) {
    counted.names.erase(counted.names.begin());
    add_name(inner, "directory", directory, S_IFDIR);
    counted.files[1].facts.parent = inner;
    const std::string text = found();
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    EXPECT_NE(text.find(": is in itself\n"), std::string::npos) << text;
}

TEST_F(JudgeTest, ChunksOfNoFileOrBeyondItsEnd) {
    add_chunk({5, 5}, 1);
    EXPECT_NE(found().find("file " + id_text({5, 5}) + ": chunk 1 at shard "), std::string::npos);
    EXPECT_NE(found().find("(16 blocks) is of no file\n"), std::string::npos);
    counted.chunks.pop_back();
    add_chunk(file, 3);
    EXPECT_NE(found().find("/directory/inner/file: chunk 3 at shard "), std::string::npos);
    EXPECT_NE(found().find("(16 blocks) lies beyond the end\n"), std::string::npos);
    counted.files[3].facts.size = 3 * kChunkBytes + 1;
    EXPECT_EQ(found(), "");
}

TEST_F(JudgeTest, ThingsAtAnotherShard) {
    counted.chunks[1].shard ^= 1;
    const std::string chunk = found();
    EXPECT_EQ(std::ranges::count(chunk, '\n'), 1) << chunk;
    EXPECT_NE(chunk.find("(16 blocks) is another shard's\n"), std::string::npos) << chunk;
    counted.chunks[1].shard ^= 1;
    counted.names[3].shard ^= 1;
    EXPECT_NE(found().find("/link: shard "), std::string::npos);
    counted.names[3].shard ^= 1;
    add_file(file, kFile, 2, 0);
    counted.files.back().shard ^= 1;
    const std::string second = found();
    EXPECT_EQ(std::ranges::count(second, '\n'), 1) << second;
    EXPECT_NE(second.find("which is not its home\n"), std::string::npos) << second;
    counted.files.back().facts.id.place = ~std::uint64_t{0};  // in no slot
    EXPECT_NE(found().find("which is not its home\n"), std::string::npos);
}

TEST_F(JudgeTest, NoRoot) {
    counted.files.erase(counted.files.begin());
    EXPECT_NE(found().find("/: the root directory is not there\n"), std::string::npos);
}

// Names with the same hash are listed again.
TEST_F(JudgeTest, ANameThatIsListedTwiceIsOne) {
    counted.names.insert(counted.names.begin() + 3, counted.names[3]);
    EXPECT_EQ(found(), "");
}

TEST_F(JudgeTest, NamesArePrintedOnOneLine) {
    EXPECT_EQ(shown("a\nb\\\x1b\x7f \xff"), "a\\x0ab\\x5c\\x1b\\x7f \xff");
}

}  // namespace
}  // namespace cairn::fstool
