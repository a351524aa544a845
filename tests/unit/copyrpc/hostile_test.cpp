// Peers of an endpoint that write arbitrary bytes: their connection closes with a reason, and others stay open.
#include "tests/unit/copyrpc/stranger.hpp"

namespace cairn::copyrpc {
namespace {

TEST_F(CopyrpcStranger, EachBreachClosesItsConnectionAndNoOther) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message request;
    request.type = kKeep;
    request.charge = 200;
    send_first(request);
    EXPECT_EQ(breaches(Breach::Overdrawn), 1U);
    EXPECT_TRUE(stranger.ended);
    EXPECT_TRUE(kept.empty());
    (void)post(session, 1);
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(server.endpoint->statistics().links.peers_lost, 1U);
}

TEST_F(CopyrpcStranger, AnAnswerToACallOfSomebodyElseIsABreach) {
    const SessionId session = connect();
    int ended = 0;
    Call call;  // the server calls the client, which does not answer
    call.type = kKeep + 1;
    client.endpoint->set_handler(
        kKeep + 1,
        [](void* context, const Request& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(context)->push_back(request.keep());
        },
        &kept);
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult&) { ++*static_cast<int*>(context); };
    EXPECT_EQ(server.endpoint->post(SessionId{0}, call, now).verdict, PostVerdict::Posted);
    run_all(milliseconds(1));
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message answer;
    answer.answer = true;
    answer.call = 0;  // the number of that call
    send_first(answer);
    EXPECT_EQ(breaches(Breach::UnknownCall), 1U);
    EXPECT_EQ(ended, 0);
    (void)session;
}

TEST_F(CopyrpcStranger, AnAnswerThatNobodyAskedForIsABreach) {
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message answer;
    answer.answer = true;
    send_first(answer);
    EXPECT_EQ(breaches(Breach::UnknownCall), 1U);
    EXPECT_EQ(server.endpoint->statistics().late_answers, 0U);
}

TEST_F(CopyrpcStranger, ARequestIsForgottenWithTheConnectionOfItsCaller) {
    (void)post(connect(), 1, 32, kKeep);
    run_all(milliseconds(1));
    ASSERT_EQ(kept.size(), 1U);
    const rpc::KeptRequest of_client = std::move(kept[0]);
    kept.clear();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message request;
    request.type = kKeep;
    request.charge = 4;
    send_first(request);
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(server.endpoint->reserve(kept[0], 10).size(), 10U);
    stranger.write(0);
    run_all(milliseconds(5));
    EXPECT_EQ(breaches(Breach::BadImmediate), 1U);
    EXPECT_EQ(server.endpoint->requests_kept(), 1U);
    EXPECT_FALSE(server.endpoint->respond(kept[0], now));
    EXPECT_FALSE(server.endpoint->refuse(kept[0], now));
    EXPECT_TRUE(server.endpoint->respond(of_client, now));
}

TEST_F(CopyrpcStranger, TheKeyOfAnotherSessionIsOfNoUse) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Stranger other{"10.0.0.8"};
    other.port.join(server.port);
    server.port.join(other.port);
    const RawHello raw = hello();
    other.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
    for (int i = 0; i < 200; ++i, now = now + microseconds(20)) {
        server.turn(now);
        other.worker->turn(now);
        other.look();
    }
    ASSERT_TRUE(other.peer.has_value());
    stranger.peer = other.peer;  // as if it had guessed the place
    stranger.write(1);
    run_all(milliseconds(5));
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
    EXPECT_EQ(other.qp->state(), verbs::QpState::Rts);
    (void)session;
}

TEST_F(CopyrpcStranger, ASendInsteadOfABatchIsABreach) {
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    verbs::SendRequest request;
    EXPECT_EQ(stranger.qp->post_send(request), verbs::PostVerdict::Posted);
    run_all(milliseconds(5));
    EXPECT_EQ(breaches(Breach::BadImmediate), 1U);
    EXPECT_TRUE(stranger.ended);
}

// Valid batches, but more than the receive requests of its connection.
TEST_F(CopyrpcStranger, AFloodOfBatchesUsesUpItsOwnReceiveRequestsAlone) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    for (std::uint16_t i = 0; i < 20; ++i) {
        compose({}, {i, 0, 0, 0, 0}, i * kBlockBytes);
    }
    for (std::uint16_t i = 0; i < 20; ++i) {
        stranger.write(1, kBlockBytes, i * kBlockBytes);
        (void)post(session, i + 1U);
    }
    run_all(milliseconds(5));
    EXPECT_EQ(breaches(Breach::BadImmediate), 1U);
    EXPECT_EQ(breaches(Breach::BadHeader), 0U);
    EXPECT_TRUE(stranger.ended);
    EXPECT_EQ(count(CallStatus::Ok), 20U);
}

TEST_F(CopyrpcStranger, TheRingOfAnotherSessionIsOutOfReach) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    compose({}, {0, 0, 0, 0, 0});
    stranger.peer->address += kRing;  // beyond its own ring
    stranger.write(1);
    run_all(milliseconds(5));
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
    (void)post(session, 1);
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

}  // namespace
}  // namespace cairn::copyrpc
