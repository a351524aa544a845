// A client's state machine (figure 7), without a network.
#include "rpc/scalerpc/caller.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace cairn::scalerpc {
namespace {

constexpr BlockShape kShape{64, 4};
constexpr std::uint64_t kBase = 0x1000;

class ScalerpcCaller : public testing::Test {
protected:
    ScalerpcCaller() : memory(Caller::memory_for(kShape)), caller(kShape, memory) {
        EXPECT_TRUE(caller.on_news({News::Kind::Welcome, 0, 0, {7, Rkey{8}}}));
    }
    void stage() { (void)caller.stage({0, 1, 0, {}}, calls++, Instant{}); }
    static News grant(std::uint32_t epoch, std::uint32_t accepted) {
        return {News::Kind::Grant, epoch, accepted, {0x9000, Rkey{9}}};
    }
    static News notice(std::uint32_t epoch, std::uint32_t accepted) {
        return {News::Kind::Notice, epoch, accepted, {}};
    }
    // Sends the entry that is due, if there is one.
    std::optional<Entry> tell() {
        const std::optional<Entry> entry = caller.entry_due(kBase);
        if (entry) {
            caller.entry_written(*entry);
        }
        return entry;
    }
    Look staged(std::uint32_t sequence) {
        Request request;
        return read_request(caller.staged().subspan(kShape.end_of(sequence) - 64, 64), kStaged, sequence, request);
    }

    std::vector<std::uint8_t> memory;
    Caller caller;
    std::uint32_t calls = 0;
};

TEST_F(ScalerpcCaller, WaitsProcessesAndIsIdleAgain) {
    EXPECT_EQ(tell(), std::nullopt);
    stage();
    stage();
    EXPECT_EQ(tell(), (Entry{kBase, 0, 2, sizeof(RawTrailer), 0}));
    EXPECT_EQ(caller.state(), CallerState::Warmup);
    EXPECT_TRUE(caller.to_write().empty()) << "outside of its slice a client writes nothing";
    EXPECT_EQ(tell(), std::nullopt) << "told already";
    stage();
    EXPECT_EQ(tell()->count, 3U);
    ASSERT_TRUE(caller.on_news(grant(1, 2)));
    EXPECT_EQ(caller.state(), CallerState::Process);
    EXPECT_EQ(caller.to_write().from, 2U) << "what the server read is not written";
    EXPECT_EQ(caller.to_write().to, 3U);
    caller.ready(2);
    caller.written(3);
    EXPECT_EQ(tell(), std::nullopt);
    ASSERT_TRUE(caller.on_news(notice(1, 2)));
    EXPECT_EQ(caller.state(), CallerState::Idle);
    EXPECT_EQ(tell(), (Entry{kBase + 2 * 64, 2, 1, sizeof(RawTrailer), 1}));
    EXPECT_EQ(staged(2), Look::There) << "what was not taken waits again";
}

TEST_F(ScalerpcCaller, AnAnswerIsNoneUnlessTheServerCanHaveTheRequest) {
    const auto answered = [this](std::uint32_t sequence) { return caller.on_answered(sequence, {}); };
    stage();
    EXPECT_EQ(answered(0), Breach::BadAnswer) << "nobody was told of it";
    (void)tell();
    stage();
    EXPECT_EQ(answered(0), std::nullopt);
    EXPECT_EQ(answered(1), Breach::BadAnswer);
    EXPECT_EQ(caller.on_answered(0, grant(1, 3)), Breach::BadNews) << "there are two requests";
    EXPECT_EQ(caller.on_answered(0, grant(1, 1)), std::nullopt);
    EXPECT_EQ(answered(1), Breach::BadAnswer) << "it is to be written yet";
    caller.ready(1);
    caller.written(2);
    EXPECT_EQ(answered(1), std::nullopt);
    stage();
    ASSERT_TRUE(caller.on_news(notice(1, 2)));
    EXPECT_EQ(answered(1), std::nullopt) << "it was taken before the slice ended";
    EXPECT_EQ(answered(2), Breach::BadAnswer);
    (void)tell();
    EXPECT_EQ(answered(2), std::nullopt);
}

TEST_F(ScalerpcCaller, WhatWasToldAndIsNotTakenIsAnsweredOnceItIsWritten) {
    stage();
    stage();
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    EXPECT_EQ(caller.on_answered(1, {}), Breach::BadAnswer);
}

TEST_F(ScalerpcCaller, TheEndOfASliceIsToldEvenIfNothingWaits) {
    stage();
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    ASSERT_EQ(tell(), (Entry{kBase + 64, 1, 0, sizeof(RawTrailer), 1}));
    EXPECT_EQ(caller.state(), CallerState::Idle);
    EXPECT_EQ(tell(), std::nullopt);
}

// The news of one slice may come in an answer and in the control word, in either order.
TEST_F(ScalerpcCaller, NewsAreActedOnOnce) {
    stage();
    (void)tell();
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    (void)tell();
    stage();
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    ASSERT_TRUE(caller.on_news(grant(1, 1))) << "of a slice that is over";
    EXPECT_EQ(caller.state(), CallerState::Idle);
    EXPECT_EQ(tell()->count, 1U);
    ASSERT_TRUE(caller.on_news(grant(2, 2)));
    EXPECT_EQ(caller.state(), CallerState::Process);
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    EXPECT_EQ(caller.state(), CallerState::Process) << "an old notice ends no slice";
    EXPECT_FALSE(caller.on_news(grant(3, 2))) << "a slice begins within another";
}

// A request may have been READ and still wait at the server when its slice ends.
TEST_F(ScalerpcCaller, WhatWasReadAndNotTakenWaitsAgain) {
    for (int i = 0; i < 3; ++i) {
        stage();
    }
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 3)));
    EXPECT_TRUE(caller.to_write().empty());
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    EXPECT_EQ(tell(), (Entry{kBase + 64, 1, 2, sizeof(RawTrailer), 1}));
    EXPECT_EQ(staged(1), Look::There);
}

TEST_F(ScalerpcCaller, WhatWasNotTakenLiesInItsBlocks) {
    for (int i = 0; i < 4; ++i) {
        stage();
    }
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 4)));
    caller.free(caller.slots()[0]);
    stage();
    EXPECT_FALSE(caller.on_news(notice(1, 0))) << "five requests, and four blocks";
    EXPECT_TRUE(caller.on_news(notice(1, 1)));
}

TEST_F(ScalerpcCaller, NewsOfRequestsThatAreNotThereAreNonsense) {
    stage();
    stage();
    EXPECT_FALSE(caller.on_news(grant(1, 3)));
    EXPECT_FALSE(caller.on_news(notice(1, 3)));
    ASSERT_TRUE(caller.on_news(notice(1, 2)));
    EXPECT_FALSE(caller.on_news(notice(2, 1))) << "it took more before";
}

// It counts a session's slices, not the server's. The number wraps around.
TEST_F(ScalerpcCaller, AnEpochBehindTheHighestIsNew) {
    stage();
    ASSERT_TRUE(caller.on_news(notice(0x7fffffffU, 0)));
    ASSERT_TRUE(caller.on_news(notice(0xfffffffeU, 0)));
    ASSERT_TRUE(caller.on_news(grant(0xffffffffU, 0)));
    EXPECT_EQ(caller.state(), CallerState::Process);
    ASSERT_TRUE(caller.on_news(notice(0xffffffffU, 0)));
    ASSERT_TRUE(caller.on_news(grant(0xfffffffeU, 0))) << "of a slice that is over";
    EXPECT_EQ(caller.state(), CallerState::Idle);
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    EXPECT_EQ(caller.state(), CallerState::Process);
}

TEST_F(ScalerpcCaller, TheControlWordIsReadOnce) {
    bool nonsense = false;
    EXPECT_EQ(caller.look_at_control(nonsense), std::nullopt);
    const RawControl raw = Control{1, notice(4, 0)}.raw();
    std::memcpy(caller.answers().data(), &raw, sizeof(raw));
    const std::optional<News> news = caller.look_at_control(nonsense);
    ASSERT_TRUE(news.has_value());
    EXPECT_EQ(news->epoch, 4U);
    EXPECT_EQ(caller.look_at_control(nonsense), std::nullopt);
    EXPECT_FALSE(nonsense);
    caller.answers()[15] = 9;  // the kind
    (void)caller.look_at_control(nonsense);
    EXPECT_TRUE(nonsense);
}

TEST_F(ScalerpcCaller, ABlockIsUsedUntilItsAnswerHasCome) {
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(caller.has_room());
        stage();
    }
    EXPECT_FALSE(caller.has_room());
    caller.free(caller.slots()[1]);
    EXPECT_FALSE(caller.has_room()) << "the next one's block is that of the oldest call";
    caller.free(caller.slots()[0]);
    EXPECT_TRUE(caller.has_room());
}

// The server learns of calls that ended before their requests left, or before it took them.
TEST_F(ScalerpcCaller, RequestsOfCallsThatHaveEndedAreMarked) {
    const auto is_given_up = [this](std::uint32_t sequence) {
        Request request;
        EXPECT_EQ(read_request(caller.staged().subspan(kShape.end_of(sequence) - 64, 64), kStaged, sequence, request),
                  Look::There);
        return request.given_up;
    };
    for (int i = 0; i < 4; ++i) {
        stage();
    }
    caller.give_up(caller.slots()[1]);
    EXPECT_FALSE(is_given_up(0));
    EXPECT_TRUE(is_given_up(1));
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    caller.ready(1);
    caller.ready(2);
    caller.written(3);
    caller.give_up(caller.slots()[2]);
    EXPECT_EQ(caller.slots()[2].call, rpc::kNone) << "it has left";
    ASSERT_TRUE(caller.on_news(notice(1, 2)));
    EXPECT_TRUE(is_given_up(2)) << "it waits again";
    EXPECT_FALSE(is_given_up(3));
}

// After the entry of a request the server itself counts the time.
TEST_F(ScalerpcCaller, WhatIsStagedAgainTellsWhatTimeItHasLeft) {
    const auto stage_timed = [this](Instant now) { (void)caller.stage({0, 1, 100, {}}, calls++, now); };
    const auto left = [this](std::uint32_t sequence) {
        Request request;
        EXPECT_EQ(read_request(caller.staged().subspan(kShape.end_of(sequence) - 64, 64), kStaged, sequence, request),
                  Look::There);
        EXPECT_FALSE(request.given_up);
        return request.left_us;
    };
    const Instant start = Instant{} + milliseconds(1);
    stage_timed(start);
    stage_timed(start);
    EXPECT_EQ(tell()->count, 2U);
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    stage_timed(start + microseconds(20));
    stage();
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    EXPECT_EQ(left(2), 100U);
    caller.tell_time_left({1, 4}, start + microseconds(50));
    EXPECT_EQ(left(1), 100U) << "the server knew of it";
    EXPECT_EQ(left(2), 70U) << "it was written to the slice that is over";
    EXPECT_EQ(left(3), 0U) << "it has no deadline";
    caller.tell_time_left({1, 4}, start + microseconds(119) + nanoseconds(500));
    EXPECT_EQ(left(2), 1U) << "what is left is rounded up";
    EXPECT_EQ(tell()->count, 3U);
    caller.tell_time_left({1, 4}, start + microseconds(119) + nanoseconds(900));
    EXPECT_EQ(left(2), 1U);
}

TEST(ScalerpcTimeLeft, HasNoEndFarAway) {
    const Instant now = Instant{} + seconds(1);
    EXPECT_EQ(left_us(Instant::never(), now), rpc::kNoTimeLimit);
    EXPECT_EQ(left_us(Instant{Instant::never().ns - 1}, Instant{}), rpc::kMostTimeLeft);
    EXPECT_EQ(left_us(now + seconds(5000), now), rpc::kMostTimeLeft);
    EXPECT_EQ(left_us(now + microseconds(0xfffffffe), now), 0xfffffffeU);
    EXPECT_EQ(left_us(now + nanoseconds(1001), now), 2U);
    EXPECT_EQ(left_us(now, now), 1U);
    EXPECT_EQ(rpc::deadline_of(rpc::kMostTimeLeft, now), Instant::never()) << "only the caller knows";
    EXPECT_EQ(rpc::deadline_of(0xfffffffe, now), now + microseconds(0xfffffffe));
    EXPECT_EQ(rpc::deadline_of(rpc::kNoTimeLimit, now), Instant::never());
}

// A call whose time does not fit the field is not given up.
TEST_F(ScalerpcCaller, ACallThatHasMoreTimeThanCanBeToldIsNotOverEarlier) {
    (void)caller.stage({0, 1, rpc::kMostTimeLeft, {}}, calls++, Instant{});
    caller.tell_time_left({0, 1}, Instant{} + seconds(5000));
    Request request;
    ASSERT_EQ(read_request(caller.staged().subspan(0, 64), kStaged, 0, request), Look::There);
    EXPECT_FALSE(request.given_up);
    EXPECT_EQ(request.left_us, rpc::kMostTimeLeft);
}

// A full send queue may have delayed it.
TEST_F(ScalerpcCaller, WhatIsWrittenTellsWhatTimeItHasLeft) {
    stage();
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    (void)caller.stage({0, 1, 100, {}}, calls++, Instant{});
    (void)caller.stage({0, 1, 10, {}}, calls++, Instant{});
    caller.tell_time_left(caller.to_write(), Instant{} + microseconds(40));
    for (const std::uint32_t sequence : {1U, 2U}) {
        caller.ready(sequence);
        Request request;
        ASSERT_EQ(read_request(caller.staged().subspan(kShape.end_of(sequence) - 64, 64), 1, sequence, request),
                  Look::There);
        EXPECT_EQ(request.given_up, sequence == 2);
        EXPECT_EQ(request.left_us, sequence == 1 ? 60U : 10U);
    }
}

TEST_F(ScalerpcCaller, WhatIsOverWhenItIsStagedAgainIsGivenUp) {
    stage();
    (void)tell();
    ASSERT_TRUE(caller.on_news(grant(1, 1)));
    (void)caller.stage({0, 1, 100, {}}, calls++, Instant{});
    ASSERT_TRUE(caller.on_news(notice(1, 1)));
    caller.tell_time_left({1, 2}, Instant{} + microseconds(100));
    Request request;
    ASSERT_EQ(read_request(caller.staged().subspan(kShape.end_of(1) - 64, 64), kStaged, 1, request), Look::There);
    EXPECT_TRUE(request.given_up);
}

}  // namespace
}  // namespace cairn::scalerpc
