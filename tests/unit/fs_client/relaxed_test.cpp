// Sizes that the client reports to files' homes later.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "fs/client/late_sizes.hpp"
#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

constexpr FileId kOne{1, 1};
constexpr FileId kOther{2, 2};

class LateSizesTest : public testing::Test {
protected:
    void add(const FileId& file, std::uint64_t end, Instant now, std::uint64_t generation = 0) {
        late.add({file, {}, end, generation, now});
    }
    LateSize begin(const FileId& file) {
        LateSize size;
        EXPECT_EQ(late.begin(file, size), LateSizes::Begun::Mine);
        return size;
    }

    LateSizes late;
    const Instant start{5'000'000'000};
};

TEST_F(LateSizesTest, AreDueASecondAfterTheFirstWrite) {
    EXPECT_FALSE(late.any());
    add(kOne, 10, start);
    add(kOther, 20, start + milliseconds(300));
    add(kOne, 30, start + milliseconds(900));
    EXPECT_TRUE(late.any());
    EXPECT_TRUE(late.has(kOne));
    EXPECT_TRUE(late.due(start + milliseconds(999)).empty());
    EXPECT_EQ(late.due(start + seconds(1)), std::vector{kOne});
    EXPECT_EQ(late.due(start + seconds(2)), (std::vector{kOne, kOther}));
}

TEST_F(LateSizesTest, ReachAsFarAsTheFarthestWrite) {
    add(kOne, 50, start, 3);
    add(kOne, 20, start, 2);
    const LateSize size = begin(kOne);
    EXPECT_EQ(size.end, 50U);
    EXPECT_EQ(size.generation, 3U);
    late.end(kOne);
    EXPECT_FALSE(late.any());
    LateSize none;
    EXPECT_EQ(late.begin(kOne, none), LateSizes::Begun::Nothing);
}

TEST_F(LateSizesTest, AreToldByOneAtATime) {
    add(kOne, 10, start);
    (void)begin(kOne);
    LateSize same;
    EXPECT_EQ(late.begin(kOne, same), LateSizes::Begun::Another);
    EXPECT_TRUE(late.due(start + seconds(9)).empty()) << "somebody is at it";
    EXPECT_TRUE(late.any()) << "the home may not know yet";
}

TEST_F(LateSizesTest, ThatCameWhileTheHomeWasToldStay) {
    add(kOne, 10, start);
    (void)begin(kOne);
    add(kOne, 40, start + milliseconds(500));
    add(kOne, 30, start + milliseconds(700));
    late.end(kOne);
    EXPECT_TRUE(late.due(start + milliseconds(1499)).empty());
    EXPECT_EQ(late.due(start + milliseconds(1500)), std::vector{kOne});
    EXPECT_EQ(begin(kOne).end, 40U);
    late.end(kOne);
    EXPECT_FALSE(late.any());
}

TEST_F(LateSizesTest, ThatWereNotTakenAreToldAgainASecondLater) {
    add(kOne, 10, start);
    (void)begin(kOne);
    late.put_back(kOne, start + seconds(3));
    EXPECT_TRUE(late.due(start + milliseconds(3999)).empty());
    EXPECT_EQ(late.due(start + seconds(4)), std::vector{kOne});
    EXPECT_EQ(begin(kOne).end, 10U);
}

// Chunk 0 is at the home, chunk 1 is not.
class Relaxed : public WithDaemon {
protected:
    static constexpr std::size_t kElsewhere = 64U << 10U;  // the begin of chunk 1

    void SetUp() override {
        begin({.shards = 2, .local = {0, 1}});
        set_relaxed(*fs, true);
        file = open("/f", O_CREAT | O_RDWR);
        daemon->forget_asked();
    }
    File* open(std::string_view path, int flags) {
        File* const opened = fs->open(path, flags).wait().value;
        EXPECT_NE(opened, nullptr);
        return opened;
    }
    void write(std::string_view text, std::int64_t offset) {
        EXPECT_EQ(fs->pwrite(*file, bytes(text), offset).wait().value, text.size());
    }
    std::string read(std::size_t most, std::int64_t offset) {
        std::string text(most, '?');
        const auto got = fs->pread(*file, {reinterpret_cast<std::uint8_t*>(text.data()), most}, offset).wait();
        text.resize(got.value);
        return got.ok() ? text : "error " + std::to_string(got.error);
    }
    std::uint64_t size_at_home() {
        return daemon->with([this](FakeDaemon& all) { return all.files.node(file->id).attributes.size; });
    }
    void refuse_extends_with(int error) {
        daemon->with([error](FakeDaemon& all) {
            all.fault = [error](const ParsedRequest& asked) -> std::optional<FakeFiles::Bytes> {
                FakeFiles::Bytes bytes(kAnswerBytes);
                bytes.resize(put_error(bytes, {error, 1}));
                return std::holds_alternative<ExtendRequest>(asked.request) ? std::optional(bytes) : std::nullopt;
            };
        });
    }
    void refuse_nothing() {
        daemon->with([](FakeDaemon& all) { all.fault = {}; });
    }

    File* file = nullptr;
};

TEST_F(Relaxed, WritesElsewhereTellNothing) {
    for (int i = 0; i != 20; ++i) {
        write("some bytes", static_cast<std::int64_t>(kElsewhere) + 100 * i);
    }
    EXPECT_EQ(daemon->count("extend"), 0U);
    EXPECT_EQ(size_at_home(), 0U);
    EXPECT_EQ(fs->close(*file).wait().error, 0);
    EXPECT_EQ(daemon->count("extend"), 1U);
    EXPECT_EQ(daemon->with([](FakeDaemon& all) { return all.files.asked.back(); }), "close") << "behind it";
    EXPECT_EQ(fs->stat("/f").wait().value.size, kElsewhere + 1910);
}

TEST_F(Relaxed, StrictFilesOfTheSameClientTellAtOnce) {
    set_relaxed(*fs, false);
    File* const strict = open("/s", O_CREAT | O_RDWR);
    EXPECT_EQ(fs->pwrite(*strict, bytes("x"), kElsewhere).wait().value, 1U);
    EXPECT_EQ(daemon->count("extend"), 1U);
}

TEST_F(Relaxed, ItsOwnWritesAreSeenInEveryWay) {
    const auto at = static_cast<std::int64_t>(kElsewhere);
    write("aa", at);
    EXPECT_EQ(read(100, at), "aa");
    write("bb", at + 2);
    EXPECT_EQ(fs->stat(*file).wait().value.size, kElsewhere + 4);
    write("cc", at + 4);
    EXPECT_EQ(fs->stat("/f").wait().value.size, kElsewhere + 6);
    write("dd", at + 6);
    File* const same = open("/f", O_RDONLY);
    std::array<std::uint8_t, 100> room{};
    EXPECT_EQ(fs->pread(*same, room, at).wait().value, 8U);
    write("ee", at + 8);
    std::uint64_t seen = 0;
    std::thread([&] { seen = fs->stat("/f").wait().value.size; }).join();
    EXPECT_EQ(seen, kElsewhere + 10) << "by another thread";
    EXPECT_EQ(daemon->count("extend"), 5U);
}

TEST_F(Relaxed, HomesAreToldBeforeASyncAndBeforeAttributesAreSet) {
    const auto at = static_cast<std::int64_t>(kElsewhere);
    const auto told_before = [&](std::string_view what) {
        return daemon->with([&](FakeDaemon& all) {
            const auto& asked = all.files.asked;
            const auto told = std::ranges::find(asked, "extend");
            return told != asked.end() && std::find(told, asked.end(), what) != asked.end();
        });
    };
    write("aa", at);
    EXPECT_EQ(fs->sync(*file).wait().error, 0);
    EXPECT_TRUE(told_before("sync"));
    daemon->forget_asked();
    write("bb", at);
    EXPECT_EQ(fs->utimens("/f", {1, 2}).wait().error, 0);
    EXPECT_TRUE(told_before("setattr")) << "or the times would be overwritten later";
    daemon->forget_asked();
    write("cc", at);
    EXPECT_EQ(fs->truncate(*file, 5).wait().error, 0);
    EXPECT_TRUE(told_before("setattr"));
    daemon->forget_asked();
    EXPECT_EQ(fs->close(*file).wait().error, 0);
    EXPECT_EQ(daemon->count("extend"), 0U) << "nothing is left";
    EXPECT_EQ(fs->stat("/f").wait().value.size, 5U);
}

TEST_F(Relaxed, ASecondIsTheMostThatAHomeDoesNotKnow) {
    write("late", kElsewhere);
    EXPECT_EQ(size_at_home(), 0U);
    eventually([this] { return size_at_home() == kElsewhere + 4; });
    EXPECT_EQ(daemon->count("extend"), 1U);
}

TEST_F(Relaxed, AClientThatEndsTellsWhatIsLeft) {
    const FileId id = file->id;
    write("late", kElsewhere);
    fs.reset();
    EXPECT_EQ(daemon->with([&](FakeDaemon& all) { return all.files.node(id).attributes.size; }), kElsewhere + 4);
}

TEST_F(Relaxed, TheFileGetsLongerBehindACutByAnother) {
    write("home", 0);
    write("elsewhere", kElsewhere);
    EXPECT_EQ(connect()->truncate("/f", 1).wait().error, 0);
    EXPECT_EQ(read(4, 0), std::string("h\0\0\0", 4)) << "what the cut has seen is cut";
    EXPECT_EQ(read(100, kElsewhere), "elsewhere");
}

TEST_F(Relaxed, WhatAHomeHasNotTakenIsToldAgain) {
    write("late", kElsewhere);
    refuse_extends_with(ENOSPC);
    EXPECT_EQ(fs->sync(*file).wait().error, ENOSPC);
    EXPECT_EQ(fs->stat(*file).wait().error, ENOSPC) << "it cannot say the size";
    refuse_nothing();
    EXPECT_EQ(fs->sync(*file).wait().error, 0);
    EXPECT_EQ(size_at_home(), kElsewhere + 4);
    write("more", kElsewhere + 4);
    refuse_extends_with(ESTALE);
    EXPECT_EQ(fs->close(*file).wait().error, ESTALE) << "the file is gone: so is its size";
    refuse_nothing();
    daemon->forget_asked();
    EXPECT_EQ(fs->stat("/f").wait().value.size, kElsewhere + 4);
    EXPECT_EQ(daemon->count("extend"), 0U);
}

TEST_F(Relaxed, NotForEverIsACutFollowed) {
    write("late", kElsewhere);
    refuse_extends_with(kErrorOtherGeneration);
    EXPECT_EQ(fs->sync(*file).wait().error, EIO);
}

TEST_F(Relaxed, SurvivesALossOfTheDaemon) {
    write("late", kElsewhere);
    daemon->stop();
    daemon->start();
    EXPECT_EQ(fs->sync(*file).wait().error, 0);
    EXPECT_EQ(size_at_home(), kElsewhere + 4);
}

}  // namespace
}  // namespace cairn::fs
