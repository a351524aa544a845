// Flow control by READs: ends learn of room from headers, and READ their peer's word when they run short.
#include <random>

#include "tests/unit/copyrpc/stranger.hpp"

namespace cairn::copyrpc {
namespace {

EndpointConfig reads() {
    EndpointConfig config = small_config(400);
    config.flow = Flow::Read;
    config.peer_timeout = milliseconds(200);
    return config;
}

class CopyrpcReads : public TwoHosts {
protected:
    CopyrpcReads() : TwoHosts(reads()) {}
    std::uint64_t words_read() const {
        return client.endpoint->statistics().words_read + server.endpoint->statistics().words_read;
    }
};

TEST_F(CopyrpcReads, SmallRingsCarryManyCallsOfAnySize) {
    const SessionId session = connect();
    std::mt19937 random(1);
    for (std::uint64_t tag = 1; tag <= 3000; ++tag) {
        ASSERT_EQ(post(session, tag, random() % 401).verdict, PostVerdict::Posted);
    }
    run(milliseconds(400));
    EXPECT_EQ(count(CallStatus::Ok), 3000U);
    EXPECT_GT(words_read(), 0U);
    EXPECT_EQ(server.endpoint->requests_kept(), 0U);
    EXPECT_EQ(client.worker->engine().rc_counters().of(roce::rc::RcCounter::RnrNakSent), 0U);
}

TEST_F(CopyrpcReads, CallsSurviveLosses) {
    const SessionId session = connect();
    std::mt19937 random(3);
    for (Host* host : {&client, &server}) {
        host->port.fate = [&random](std::uint64_t) { return static_cast<int>(random() % 20 == 0 ? 0 : 1); };
    }
    for (std::uint64_t tag = 1; tag <= 500; ++tag) {
        ASSERT_EQ(post(session, tag, tag % 400).verdict, PostVerdict::Posted);
    }
    run(seconds(2), microseconds(100));
    EXPECT_EQ(count(CallStatus::Ok), 500U);
}

// In the end its caller has nothing to send, and the server sends only answers: no message says that there is room.
TEST_F(CopyrpcReads, AnswersThatFindNoRoomWaitInOrder) {
    const SessionId session = connect();
    std::vector<std::uint64_t> order;
    const auto begin = [&](std::uint64_t tag) {
        Call call;
        call.type = kKeep;
        call.tag = tag;
        call.context = &order;
        call.completion = [](void* context, const rpc::CallResult& result) {
            EXPECT_EQ(result.status, CallStatus::Ok);
            EXPECT_EQ(result.response.size(), 400U);
            EXPECT_TRUE(std::all_of(result.response.begin(), result.response.end(),
                                    [&result](std::uint8_t octet) { return octet == (result.tag & 0xffU); }));
            static_cast<std::vector<std::uint64_t>*>(context)->push_back(result.tag);
        };
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    };
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
        begin(tag);
    }
    run(milliseconds(5));
    ASSERT_EQ(kept.size(), 20U);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
        const std::vector<std::uint8_t> answer(400, static_cast<std::uint8_t>(tag));
        EXPECT_TRUE(server.endpoint->answer(kept[tag - 1], answer, now));
        expected.push_back(tag);
    }
    EXPECT_GT(server.endpoint->statistics().answers_put_off, 5U);
    run(milliseconds(5));
    EXPECT_EQ(order, expected);
    EXPECT_EQ(server.pool.live(), 3U) << "rings and words";
}

TEST_F(CopyrpcReads, ARingThatIsRetainedGoesOnOnceItIsReleased) {
    const SessionId session = connect();
    empty_answers = retains = true;
    (void)post(session, 1, 300, kKeep);
    for (std::uint64_t tag = 2; tag < 100; ++tag) {
        ASSERT_EQ(post(session, tag, 100).verdict, PostVerdict::Posted);
    }
    run(milliseconds(20));
    EXPECT_LT(count(CallStatus::Ok), 50U) << "the ring is used up";
    EXPECT_TRUE(std::equal(payloads[0].begin(), payloads[0].end(), requests[1].begin(), requests[1].end()));
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 99U);
}

// One READ at a time, and none if there is no room to gain.
TEST_F(CopyrpcReads, AnIdleEndReadsNothing) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 200; ++tag) {
        (void)post(session, tag, 300);
    }
    run(milliseconds(50));
    EXPECT_EQ(count(CallStatus::Ok), 200U);
    const std::uint64_t before = words_read();
    run(milliseconds(50));
    EXPECT_EQ(words_read(), before);
    retains = empty_answers = true;
    for (std::uint64_t tag = 201; tag <= 208; ++tag) {  // most of the ring; none waits
        (void)post(session, tag, 350, kKeep);
    }
    run(milliseconds(50));
    EXPECT_LT(words_read() - before, 4U);
}

TEST_F(CopyrpcReads, OneReadIsUnderWayAtATime) {
    const SessionId session = connect();
    retains = empty_answers = true;
    for (std::uint64_t tag = 1; tag <= 100; ++tag) {
        (void)post(session, tag, 300, kKeep);
    }
    for (int i = 0; i < 50; ++i) {
        (void)client.worker->turn(now);  // its server takes no turn
        (void)post(session, 1000U + static_cast<std::uint64_t>(i), 8);
    }
    EXPECT_LE(client.endpoint->statistics().words_read, 1U);
}

TEST_F(CopyrpcReads, ASessionThatEndsTakesItsLateAnswersWithIt) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
        (void)post(session, tag, 8, kKeep);
    }
    run(milliseconds(5));
    ASSERT_EQ(kept.size(), 20U);
    const std::vector<std::uint8_t> answer(400);
    for (const RequestHandle& handle : kept) {
        EXPECT_TRUE(server.endpoint->answer(handle, answer, now));
    }
    EXPECT_GT(server.pool.live(), 3U);
    server.endpoint.reset();
    EXPECT_EQ(server.pool.live(), 0U);
}

class CopyrpcLongReads : public TwoHosts {
protected:
    CopyrpcLongReads() : TwoHosts(with_long()) {}
    static EndpointConfig with_long() {
        EndpointConfig config = reads();
        config.message_bytes_max = kLongestOfPool;
        config.answer_bytes = 300'000;
        return config;
    }
};

TEST_F(CopyrpcLongReads, LongMessagesTravelByThemselves) {
    const SessionId session = connect();
    std::mt19937 random(7);
    for (std::uint64_t tag = 1; tag <= 100; ++tag) {
        ASSERT_EQ(post(session, tag, random() % 2 == 0 ? random() % 300 : random() % 300'000).verdict,
                  PostVerdict::Posted);
    }
    run(milliseconds(200));
    EXPECT_EQ(count(CallStatus::Ok), 100U);
}

class CopyrpcUnlikeFlows : public TwoHosts {
protected:
    CopyrpcUnlikeFlows() : TwoHosts(reads(), small_config(400)) {}
};

TEST_F(CopyrpcUnlikeFlows, EndsOfUnlikeFlowsDoNotConnect) {
    (void)connect();
    EXPECT_EQ(client.events, std::vector{SessionEvent::Refused});
    EXPECT_EQ(server.endpoint->statistics().links.refused, 1U);
}

class CopyrpcLyingWords : public testing::Test {
protected:
    CopyrpcLyingWords() {
        stranger.port.join(server.port);
        server.port.join(stranger.port);
        EXPECT_TRUE(server.endpoint->listen(kService).ok());
        server.endpoint->set_handler(
            kKeep, [](void*, const Request&) {}, nullptr);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            server.turn(now);
            stranger.worker->turn(now);
            stranger.look();
        }
    }
    Instant now{1'000'000'000};
    Host server{"10.0.0.2", 22, reads()};
    Stranger stranger{"10.0.0.9"};
};

TEST_F(CopyrpcLyingWords, AWordThatCannotBeIsABreach) {
    RawHello raw;
    Hello hello{kRing, 16, stranger.mr->address() + kRing, stranger.mr->rkey()};
    hello.flow = Flow::Read;
    auto word = stranger.device.register_memory(*stranger.pd, stranger.memory().first(8), verbs::kAllRights, 0);
    ASSERT_TRUE(word.ok());
    hello.word = word.value()->rkey();
    hello.emit(raw);
    stranger.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
    run(milliseconds(5));
    ASSERT_TRUE(stranger.peer.has_value());
    for (int i = 0; i < 16; ++i) {
        EXPECT_EQ(stranger.qp->post_receive(verbs::ReceiveRequest{}), verbs::PostVerdict::Posted);
    }
    const RawConsumerWord lie = ConsumerWord{1000, 0}.raw();
    std::memcpy(stranger.memory().data(), &lie, sizeof(lie));
    const std::vector<std::uint8_t> request(400);
    Call call;
    call.type = kKeep;
    call.request = request;
    for (int i = 0; i < 10; ++i) {  // until it runs short
        (void)server.endpoint->post(SessionId{0}, call, now);
    }
    run(milliseconds(5));
    EXPECT_EQ(server.endpoint->statistics().breaches.of(Breach::BadCredit), 1U);
    EXPECT_TRUE(stranger.ended);
}

}  // namespace
}  // namespace cairn::copyrpc
