// fs/medium: whether a file has all of its blocks, in the file system of the test's folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fs/medium/file_blocks.hpp"

namespace cairn::fs {
namespace {

constexpr off_t kPage = 4096;
constexpr off_t kBytes = 200 * kPage;

class FileBlocks : public testing::Test {
protected:
    // Makes a file without a name.
    static int make() {
        std::string path = "file-blocks-XXXXXX";
        const int fd = ::mkstemp(path.data());
        EXPECT_GE(fd, 0);
        ::unlink(path.c_str());
        return fd;
    }

    void SetUp() override {
        ASSERT_EQ(::posix_fallocate(fd_, 0, kBytes), 0);
        if (!has_all_blocks(fd_, kBytes)) {
            GTEST_SKIP() << "this file system does not tell blocks";
        }
    }
    void TearDown() override {
        ::close(fd_);
        ::close(other_);
    }

    int fd_ = make();
    int other_ = make();
};

TEST_F(FileBlocks, OneThatWasGivenAllOfThemHasThemWhetherWrittenOrNot) {
    ASSERT_EQ(::pwrite(fd_, "x", 1, 7 * kPage), 1);
    EXPECT_TRUE(has_all_blocks(fd_, kBytes));
    EXPECT_TRUE(has_all_blocks(fd_, kPage + 1));
    EXPECT_FALSE(has_all_blocks(fd_, 2 * kBytes));
}

TEST_F(FileBlocks, OneWithAHoleAnywhereLacksThem) {
    for (const off_t at : {off_t{0}, 100 * kPage, kBytes - kPage}) {
        ASSERT_EQ(::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, kPage), 0);
        EXPECT_FALSE(has_all_blocks(fd_, kBytes)) << at;
        ASSERT_EQ(::posix_fallocate(fd_, at, kPage), 0);
        EXPECT_TRUE(has_all_blocks(fd_, kBytes)) << at;
    }
    ASSERT_EQ(::ftruncate(other_, kBytes), 0);
    EXPECT_FALSE(has_all_blocks(other_, kBytes));
}

TEST_F(FileBlocks, OneInManyPiecesIsLookedAtToItsEnd) {
    const int pieces = make();
    for (off_t at = 0; at < kBytes; at += kPage) {
        ASSERT_EQ(::posix_fallocate(pieces, at, kPage), 0);
        ASSERT_EQ(::posix_fallocate(other_, at, kPage), 0);  // takes the next block
    }
    EXPECT_TRUE(has_all_blocks(pieces, kBytes));
    ASSERT_EQ(::fallocate(pieces, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kBytes - 2 * kPage, kPage), 0);
    EXPECT_FALSE(has_all_blocks(pieces, kBytes));
    ::close(pieces);
}

TEST_F(FileBlocks, NoFileHasNone) {
    EXPECT_FALSE(has_all_blocks(-1, kPage));
}

}  // namespace
}  // namespace cairn::fs
