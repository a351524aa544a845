// Reads and writes over chunks of several shards, with a fake daemon.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

constexpr std::size_t kChunk = 64U << 10U;

std::string text_of(std::size_t bytes) {
    std::string text(bytes, ' ');
    for (std::size_t i = 0; i != bytes; ++i) {
        text[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
    }
    return text;
}

class Data : public WithDaemon {
protected:
    void begin_with(const FakeSetup& setup) {
        begin(setup);
        file = fs->open("/f", O_CREAT | O_RDWR).wait().value;
        ASSERT_NE(file, nullptr);
    }
    Outcome<std::uint64_t> write(std::string_view text, std::int64_t offset) {
        return fs->pwrite(*file, bytes(text), offset).wait();
    }
    std::string read(std::size_t most, std::int64_t offset) {
        std::string text(most, '?');
        const auto got = fs->pread(*file, {reinterpret_cast<std::uint8_t*>(text.data()), most}, offset).wait();
        text.resize(got.value);
        return got.ok() ? text : "error " + std::to_string(got.error);
    }
    [[nodiscard]] std::uint64_t size() { return fs->stat(*file).wait().value.size; }

    File* file = nullptr;
};

TEST_F(Data, GoesToAllShardsAndComesBack) {
    for (const std::uint32_t shards : {1U, 2U, 3U}) {
        begin_with({.shards = shards, .local = {0}});
        const std::string text = text_of(40 * kChunk + 1234);
        EXPECT_EQ(write(text, 777).value, text.size());
        EXPECT_EQ(size(), text.size() + 777);
        EXPECT_EQ(read(text.size(), 777), text);
        EXPECT_EQ(read(text.size() + 5000, 0), std::string(777, '\0') + text) << "short at the end";
        EXPECT_EQ(read(100, 3 * kChunk - 50), text.substr(3 * kChunk - 50 - 777, 100));
        EXPECT_EQ(read(10, static_cast<std::int64_t>(text.size() + 777)), "");
        EXPECT_EQ(read(10, 1LL << 50), "");
        fs.reset();
    }
}

TEST_F(Data, MakesTheFileLongerOnceItIsThere) {
    begin_with({.shards = 2, .local = {0, 1}});
    daemon->forget_asked();
    EXPECT_EQ(write(text_of(2 * kChunk), 0).value, 2 * kChunk);
    EXPECT_EQ(daemon->count("extend"), 1U);
    EXPECT_EQ(daemon->with([](FakeDaemon& all) { return all.files.asked.back(); }), "extend");
    EXPECT_EQ(write(text_of(100), 0).value, 100U);
    EXPECT_EQ(daemon->count("extend"), 1U) << "chunk 0 is at home";
}

TEST_F(Data, AsksForTheSizeOnlyIfNoPieceTellsIt) {
    begin_with({.shards = 2, .local = {0, 1}});
    EXPECT_EQ(write(text_of(4 * kChunk), 0).value, 4 * kChunk);
    EXPECT_EQ(size(), 4 * kChunk);
    daemon->forget_asked();
    EXPECT_EQ(read(100, 0).size(), 100U);
    EXPECT_EQ(read(2 * kChunk, 0).size(), 2 * kChunk);
    EXPECT_EQ(daemon->count("stat"), 0U);
    EXPECT_EQ(read(100, kChunk).size(), 100U);
    EXPECT_EQ(daemon->count("stat"), 1U) << "a chunk elsewhere";
    EXPECT_EQ(read(100, 4 * kChunk - 50).size(), 50U);
}

TEST_F(Data, HasHolesOfZeros) {
    begin_with({.shards = 3, .local = {0, 1}});
    EXPECT_EQ(write("end", 5 * kChunk + 10).value, 3U);
    std::string expected(5 * kChunk + 13, '\0');
    expected.replace(5 * kChunk + 10, 3, "end");
    EXPECT_EQ(read(10 * kChunk, 0), expected);
}

TEST_F(Data, SeesWhatOthersAddAndCut) {
    begin_with({.shards = 2, .local = {0}});
    EXPECT_EQ(write(text_of(3 * kChunk), 0).value, 3 * kChunk);
    const auto other = connect();
    File* const same = other->open("/f", O_WRONLY).wait().value;
    EXPECT_EQ(other->pwrite(*same, bytes("more"), 3 * kChunk).wait().value, 4U);
    EXPECT_EQ(read(100, 3 * kChunk), "more");
    EXPECT_EQ(other->truncate(*same, kChunk + 7).wait().error, 0);
    EXPECT_EQ(read(3 * kChunk, 0), text_of(kChunk + 7));
    EXPECT_EQ(read(100, kChunk), text_of(kChunk + 7).substr(kChunk)) << "cut to what is known to be there";
}

TEST_F(Data, IsWrittenAgainIfTheFileWasCutMeanwhile) {
    begin_with({.shards = 2, .local = {0, 1}});
    EXPECT_EQ(write(text_of(2 * kChunk), 0).value, 2 * kChunk);
    EXPECT_EQ(connect()->truncate("/f", 10).wait().error, 0);
    EXPECT_EQ(write("late", 0).value, 4U) << "with the new generation";
    EXPECT_EQ(read(100, 0), "late" + text_of(10).substr(4));
    daemon->with([](FakeDaemon& all) {
        all.fault = [](const ParsedRequest& asked) -> std::optional<FakeFiles::Bytes> {
            FakeFiles::Bytes bytes(kAnswerBytes);
            bytes.resize(put_error(bytes, {kErrorOtherGeneration, 1}));
            return std::holds_alternative<WriteRequest>(asked.request) ? std::optional(bytes) : std::nullopt;
        };
    });
    EXPECT_EQ(write("never", 0).error, EIO) << "not for ever";
}

TEST_F(Data, IsAddedAtTheEnd) {
    begin_with({.shards = 2, .local = {0}});
    File* const end = fs->open("/f", O_WRONLY | O_APPEND).wait().value;
    EXPECT_EQ(fs->pwrite(*end, bytes("one"), 99).wait().value, 3U);
    EXPECT_EQ(fs->pwrite(*end, bytes("two"), 0).wait().value, 3U);
    EXPECT_EQ(read(100, 0), "onetwo");
}

TEST_F(Data, OfAFailedWriteIsTheUnbrokenPart) {
    begin_with({.shards = 2, .local = {0}});
    daemon->with([](FakeDaemon& all) {
        all.fault = [](const ParsedRequest& asked) -> std::optional<FakeFiles::Bytes> {
            const auto* const write = std::get_if<WriteRequest>(&asked.request);
            FakeFiles::Bytes bytes(kAnswerBytes);
            bytes.resize(put_error(bytes, {ENOSPC, 1}));
            return write != nullptr && write->offset >= 3 * kChunk ? std::optional(bytes) : std::nullopt;
        };
    });
    EXPECT_EQ(write(text_of(20 * kChunk), 0).value, 3 * kChunk);
    EXPECT_EQ(size(), 3 * kChunk);
    EXPECT_EQ(write(text_of(20 * kChunk), 3 * kChunk).error, ENOSPC);
}

TEST_F(Data, RefusesWhatCannotBe) {
    begin_with({});
    EXPECT_EQ(write("x", -1).error, EINVAL);
    EXPECT_EQ(write("x", INT64_MAX).error, EFBIG);
    EXPECT_EQ(read(10, -1), "error 22");
    EXPECT_EQ(read(10, INT64_MAX), "");
    EXPECT_EQ(write("", 5).value, 0U);
    File* const reader = fs->open("/f", O_RDONLY).wait().value;
    EXPECT_EQ(fs->pwrite(*reader, bytes("x"), 0).wait().error, EBADF);
    EXPECT_EQ(fs->truncate(*reader, 0).wait().error, EINVAL);
    File* const writer = fs->open("/f", O_WRONLY).wait().value;
    std::array<std::uint8_t, 4> room{};
    EXPECT_EQ(fs->pread(*writer, room, 0).wait().error, EBADF);
    EXPECT_EQ(fs->open("/f", O_RDWR | O_WRONLY).wait().error, EINVAL);
}

TEST_F(Data, ComesInAnyOrder) {
    begin_with({.shards = 2, .local = {0, 1}});
    daemon->with([](FakeDaemon& all) { all.newest_first = true; });
    const std::string text = text_of(50 * kChunk);
    EXPECT_EQ(write(text, 0).value, text.size());
    EXPECT_EQ(read(text.size(), 0), text);
}

TEST_F(Data, IsEmptiedByOpening) {
    begin_with({.shards = 2, .local = {0}});
    EXPECT_EQ(write("old text", 0).value, 8U);
    File* const fresh = fs->open("/f", O_RDWR | O_TRUNC).wait().value;
    EXPECT_EQ(size(), 0U);
    EXPECT_EQ(fs->pwrite(*fresh, bytes("new"), 0).wait().value, 3U);
    EXPECT_EQ(read(100, 0), "new");
    File* const reader = fs->open("/f", O_RDONLY | O_TRUNC).wait().value;
    EXPECT_EQ(size(), 0U);
    EXPECT_EQ(fs->pwrite(*reader, bytes("x"), 0).wait().error, EBADF) << "no right to write comes with it";
    EXPECT_EQ(fs->truncate(*reader, 5).wait().error, EINVAL);
    std::array<std::uint8_t, 4> room{};
    EXPECT_EQ(fs->pread(*reader, room, 0).wait().error, 0);
}

}  // namespace
}  // namespace cairn::fs
