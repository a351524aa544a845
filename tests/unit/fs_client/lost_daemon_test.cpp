// Daemons that die, come back, do not answer, or have another slot table.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

using LostDaemon = WithDaemon;

TEST_F(LostDaemon, IsAskedAgainWhenItComesBack) {
    begin({.shards = 2, .local = {0, 1}});
    make("/f", "text");
    File* const file = fs->open("/f", O_RDWR).wait().value;
    hold_answers(true);
    Counts counts;
    for (int i = 0; i != 20; ++i) {
        fs->stat(i % 2 == 0 ? "/f" : "/").start(count, &counts);
    }
    daemon->stop();
    daemon->answers = true;
    daemon->start();
    while (counts.ended != 20) {
        fs->wait();
    }
    EXPECT_EQ(counts.failed, 0);
    daemon->with([&](FakeDaemon& all) {
        EXPECT_EQ(all.hellos.back(), 42U) << "it says who it was";
        EXPECT_FALSE(all.seen.empty());
    });
    eventually([&] { return fs->poll(), daemon->count("reopen") > 0; });
    EXPECT_EQ(fs->pwrite(*file, bytes("more"), 4).wait().value, 4U);
    EXPECT_EQ(content("/f"), "textmore");
}

TEST_F(LostDaemon, GetsRetriesInTheirSlotsWithTheirNumbers) {
    begin({.shape = {4, 4096}});
    make("/f");
    std::array<std::uint32_t, 4> numbers{};  // of each slot's last request
    daemon->with([&numbers](FakeDaemon& all) {
        all.answers = false;
        for (const auto& seen : all.seen) {
            numbers[seen.slot] = seen.head.sequence;
        }
        all.seen.clear();
    });
    Counts counts;
    for (int i = 0; i != 6; ++i) {
        fs->stat("/f").start(count, &counts);
    }
    daemon->stop();
    daemon->answers = true;
    daemon->start();
    while (counts.ended != 6) {
        fs->wait();
    }
    EXPECT_EQ(counts.failed, 0);
    daemon->with([&numbers](FakeDaemon& all) {
        EXPECT_GE(all.seen.size(), 6U);
        for (const auto& seen : all.seen) {
            EXPECT_EQ(seen.head.sequence, ++numbers[seen.slot]) << "the numbers of slot " << seen.slot << " go on";
        }
    });
}

// The daemon has closed the file and died before its answer; the next one does not know that.
TEST_F(LostDaemon, HasClosedWhatTheNextOneDoesNotKnow) {
    begin({});
    make("/f");
    File* const file = fs->open("/f", O_RDWR).wait().value;
    daemon->with([&](FakeDaemon& all) { all.files.forget_who_has_open(); });
    EXPECT_EQ(fs->close(*file).wait().error, 0);
    EXPECT_EQ(daemon->count("close"), 2U);
}

TEST_F(LostDaemon, FailsCallsIfItStaysAway) {
    begin({}, milliseconds(300));
    make("/f");
    File* const file = fs->open("/f", O_RDWR).wait().value;
    daemon->stop();
    EXPECT_EQ(fs->stat("/f").wait().error, EIO);
    EXPECT_EQ(fs->pwrite(*file, bytes("x"), 0).wait().error, EIO);
    daemon->start();
    EXPECT_EQ(fs->stat("/f").wait().error, 0) << "later ones find it";
    EXPECT_EQ(fs->pwrite(*file, bytes("x"), 0).wait().value, 1U);
}

TEST_F(LostDaemon, FailsCallsIfItIsSilent) {
    begin({.shape = {2, 4096}}, milliseconds(200));
    make("/f");
    hold_answers(true);
    Counts counts;
    for (int i = 0; i != 5; ++i) {
        fs->stat("/f").start(count, &counts);
    }
    while (counts.ended != 5) {
        fs->wait();
    }
    EXPECT_EQ(counts.failed, 5);
    EXPECT_EQ(counts.error, ETIMEDOUT);
    hold_answers(false);
    EXPECT_EQ(fs->stat("/f").wait().error, 0) << "slots come back with their late answers";
}

TEST_F(LostDaemon, IsMetAgainForANewerTable) {
    begin({.shards = 2, .local = {0}});
    make("/f");
    std::atomic<int> refused{0};
    daemon->with([&refused](FakeDaemon& all) {
        all.epoch = 2;
        all.fault = [&refused](const ParsedRequest& asked) -> std::optional<FakeFiles::Bytes> {
            FakeFiles::Bytes bytes(kAnswerBytes);
            bytes.resize(put_error(bytes, {kErrorOtherShard, 2}));
            refused += asked.head.table == 1 ? 1 : 0;
            return asked.head.table == 1 ? std::optional(bytes) : std::nullopt;
        };
    });
    EXPECT_EQ(fs->stat("/f").wait().error, 0);
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(fs->view()->table().epoch(), 2U);
    daemon->with([](FakeDaemon& all) { all.epoch = 1; });
    daemon->with([](FakeDaemon& all) {
        all.fault = [](const ParsedRequest&) -> std::optional<FakeFiles::Bytes> {
            FakeFiles::Bytes bytes(kAnswerBytes);
            bytes.resize(put_error(bytes, {kErrorOtherShard, 2}));
            return bytes;
        };
    });
    EXPECT_EQ(fs->stat("/f").wait().error, EIO) << "not for ever";
}

TEST_F(LostDaemon, MayRefuse) {
    daemon.emplace();
    const auto answer_hello_with = [this](const FakeFiles::Bytes& bytes) {
        daemon->with([&bytes](FakeDaemon& all) { all.hello_answer = bytes; });
        return Client::connect({.socket = daemon->socket()});
    };
    const auto refused = answer_hello_with(bytes_of(Refusal{"32 clients are there; end one"}));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find("32 clients are there; end one"), std::string::npos);
    Welcome odd;
    odd.local = {0};
    odd.table.emplace(1);
    for (const std::uint32_t chunk_bytes : {0U, 5000U, 0x80000000U}) {
        odd.chunk_bytes = chunk_bytes;
        EXPECT_FALSE(answer_hello_with(bytes_of(odd)).ok());
    }
    for (const FakeFiles::Bytes& bytes : {FakeFiles::Bytes{1}, FakeFiles::Bytes(20000, 0xff), bytes_of(Hello{1})}) {
        const auto strange = answer_hello_with(bytes);
        ASSERT_FALSE(strange.ok());
        EXPECT_NE(strange.error().text().find("one version"), std::string::npos);
    }
}

TEST_F(LostDaemon, MayRefuseAChannel) {
    begin({}, milliseconds(200));
    for (const FakeFiles::Bytes& bytes : {bytes_of(Refusal{"no"}), bytes_of(ChannelRequest{0}), FakeFiles::Bytes{7}}) {
        daemon->with([&bytes](FakeDaemon& all) { all.channel_answer = bytes; });
        EXPECT_EQ(fs->stat("/").wait().error, EIO);
    }
    daemon->with([](FakeDaemon& all) { all.channel_answer.reset(); });
    EXPECT_EQ(fs->stat("/").wait().error, 0);
}

}  // namespace
}  // namespace cairn::fs
