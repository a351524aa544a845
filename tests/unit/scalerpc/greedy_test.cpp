// Clients that hold resources that others need: they acknowledge nothing, or answer READs late.
#include "tests/unit/scalerpc/stranger.hpp"

namespace cairn::scalerpc {
namespace {

constexpr std::size_t kLong = 600;  // bytes of an answer that does not fit its own room

class ScalerpcGreedy : public ScalerpcStranger {
protected:
    static EndpointConfig with_long_answers(std::uint16_t sessions) {
        EndpointConfig config = small(sessions);
        config.shape.bytes = 1024;
        return config;
    }
    // Fills the queue. Its entries are not executed, and no more fits: neither now nor once the server has seen earlier
    // completions.
    void fill_queue_of(Session& session) {
        ASSERT_EQ(session.qp->modify(verbs::QpState::Sqd), std::nullopt);
        verbs::SendRequest write;
        write.opcode = verbs::WorkOpcode::RdmaWrite;
        write.signalled = false;
        write.remote_address = session.peer.answers.address;
        write.rkey = session.peer.answers.rkey;
        for (int i = 0; i < 3; ++i) {
            while (session.qp->post_send(write) == verbs::PostVerdict::Posted) {
            }
            run_all(microseconds(20));
        }
    }
    void write_long(std::uint32_t sequence) {
        std::vector<std::uint8_t> payload(kLong);
        const std::uint64_t tag = 1'000'000 + sequence;
        std::memcpy(payload.data(), &tag, sizeof(tag));
        write_request({sequence, kEcho, 0, payload}, grant.epoch);
        run_all(microseconds(15));
    }
};

// The client keeps asking although it does not read its answers. The answers kept for it are bounded, and other clients
// have buffers for theirs.
TEST_F(ScalerpcGreedy, WhoAcknowledgesNothingKeepsAFewAnswers) {
    EndpointConfig config = with_long_answers(16);
    config.long_answers = 2 * config.shape.blocks + 1;
    meet(config);
    enter_slice();
    Session* const session = of_stranger();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(session->qp->modify(verbs::QpState::Sqd), std::nullopt);  // as if no packet was acknowledged
    std::size_t most = 0;
    for (std::uint32_t sequence = 1; sequence <= 100 && !stranger.ended; ++sequence) {
        write_long(sequence);
        most = session->is_open() ? std::max(most, session->guest->outbox.entries().size()) : most;
        post(0, kLong);
        run_all(milliseconds(3));
        EXPECT_EQ(count(CallStatus::Ok), sequence) << "others have buffers for their answers";
    }
    EXPECT_EQ(breaches(Breach::Overdrawn), 1U);
    EXPECT_TRUE(stranger.ended);
    EXPECT_EQ(most, shape.blocks);
    EXPECT_EQ(counted().answers_given_up, 0U);
}

// A client sees an answer in its memory before the server learns of that. If one acknowledgement is lost, the answers
// to its next requests find the buffers in use.
TEST_F(ScalerpcGreedy, AnswersWaitForAcknowledgementsThatWereLost) {
    EndpointConfig config = with_long_answers(1);
    config.long_answers = config.shape.blocks;
    begin(config, 1);
    const std::uint64_t live = server->pool.live();
    for (std::size_t calls = config.shape.blocks; calls <= 4 * config.shape.blocks; calls += config.shape.blocks) {
        for (std::uint32_t i = 0; i < config.shape.blocks; ++i) {
            post(0, kLong + 20 * i);
        }
        bool lost = false;
        for (int i = 0; i < 100'000 && count(CallStatus::Ok) + count(CallStatus::AnswerLost) < calls; ++i) {
            now = now + microseconds(5);
            const bool loses = !lost && counted().requests_handled == calls;
            lost = lost || loses;
            client->port.fate = [loses](std::uint64_t) { return loses ? 0 : 1; };
            client->turn(now);
            server->turn(now);
        }
        client->port.fate = [](std::uint64_t) { return 1; };
    }
    EXPECT_EQ(count(CallStatus::AnswerLost), 0U);
    EXPECT_GT(counted().answers_put_off, 0U);
    run(milliseconds(200));
    EXPECT_EQ(server->pool.live(), live);
    check();
}

// If there is neither a buffer nor memory, the caller learns that its answer is lost.
TEST_F(ScalerpcGreedy, AnAnswerWithoutAnyMemoryIsGivenUp) {
    EndpointConfig config = with_long_answers(1);
    config.long_answers = 1;
    begin(config, 1);
    std::vector<rpc::MsgBuffer> all;
    for (std::uint32_t bytes = 1U << 20U; bytes >= 64; bytes /= 2) {
        for (rpc::MsgBuffer got = server->pool.allocate(bytes); got.valid(); got = server->pool.allocate(bytes)) {
            all.push_back(got);
        }
    }
    for (std::uint32_t i = 0; i < config.shape.blocks; ++i) {
        post(0, kLong);
    }
    run(milliseconds(3));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(count(CallStatus::AnswerLost), config.shape.blocks - 1U);
    EXPECT_EQ(counted().answers_given_up, config.shape.blocks - 1U);
    for (rpc::MsgBuffer& each : all) {
        server->pool.release(each);
    }
    post(0, kLong);
    run(milliseconds(3));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
}

// Waiting answers are dropped with their session.
TEST_F(ScalerpcGreedy, AnswersThatWaitEndWithTheirSession) {
    EndpointConfig config = with_long_answers(16);
    config.long_answers = 1;
    meet(config);
    enter_slice();
    Session* const session = of_stranger();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(session->qp->modify(verbs::QpState::Sqd), std::nullopt);
    const std::uint64_t live = server->pool.live();
    for (std::uint32_t sequence = 1; sequence <= 3; ++sequence) {
        write_long(sequence);
    }
    EXPECT_EQ(counted().answers_put_off, 2U);
    EXPECT_EQ(server->pool.live(), live + 2);
    server->endpoint->disconnect(session->id, now);
    run_all(milliseconds(5));
    EXPECT_LE(server->pool.live(), live);
    post(0, kLong);
    run_all(milliseconds(3));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

// As soon as a client is gone, other clients have all of its buffers.
TEST_F(ScalerpcGreedy, TheBuffersOfASessionEndWithIt) {
    EndpointConfig config = with_long_answers(16);
    config.long_answers = config.shape.blocks;
    meet(config);
    enter_slice();
    Session* const session = of_stranger();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(session->qp->modify(verbs::QpState::Sqd), std::nullopt);
    for (std::uint32_t sequence = 1; sequence <= shape.blocks; ++sequence) {
        write_long(sequence);
    }
    post(0, kLong);
    run_all(milliseconds(1));
    EXPECT_EQ(counted().answers_put_off, 1U) << "all buffers are lent";
    server->endpoint->disconnect(session->id, now);
    run_all(milliseconds(5));
    for (std::uint32_t i = 0; i < shape.blocks; ++i) {
        post(0, kLong);
    }
    run_all(milliseconds(3));
    EXPECT_EQ(count(CallStatus::Ok), shape.blocks + 1);
    EXPECT_EQ(counted().answers_put_off, 1U);
}

// Its send queue is full when its slice ends. It has all of its time once the notice has left.
TEST_F(ScalerpcGreedy, ANoticeThatIsHeldUpBlamesNobody) {
    EndpointConfig config = small(32);
    config.notice_timeout = milliseconds(10);
    config.peer_timeout = milliseconds(200);
    meet(config, 20);
    enter_slice();
    Session* const session = of_stranger();
    ASSERT_NE(session, nullptr);
    fill_queue_of(*session);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    run_all(milliseconds(30));
    EXPECT_EQ(counted().keys_ended, 0U);
    EXPECT_EQ(counted().links.peers_lost, 0U);
    ASSERT_EQ(session->guest->state, GuestState::Leaving);
    ASSERT_EQ(session->qp->modify(verbs::QpState::Rts), std::nullopt);
    run_all(milliseconds(6));
    EXPECT_EQ(stranger.control().kind, News::Kind::Notice);
    EXPECT_EQ(counted().keys_ended, 0U) << "it was just told";
    run_all(milliseconds(8));
    EXPECT_EQ(counted().keys_ended, 1U);
    again = false;
    run_all(milliseconds(5));
}

// Its host acknowledges so little that its notice never leaves, and so much that it is not silent. It keeps its key and
// its place as long as a lost peer would, plus a notice's time.
TEST_F(ScalerpcGreedy, WhoHoldsItsNoticeUpForAsLongAsALostPeerLosesItsKey) {
    EndpointConfig config = small(32);
    config.notice_timeout = milliseconds(10);
    config.peer_timeout = milliseconds(200);
    meet(config, 20);
    enter_slice();
    Session* const session = of_stranger();
    ASSERT_NE(session, nullptr);
    fill_queue_of(*session);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    while (session->guest->state != GuestState::Leaving) {
        run_all(microseconds(5));
    }
    const Instant told = now;
    while (session->guest->state == GuestState::Leaving && now - told < milliseconds(400)) {
        session->heard = true;
        run_all(microseconds(100));
    }
    EXPECT_GE(now - told, config.peer_timeout + config.notice_timeout);
    EXPECT_LE(now - told, config.peer_timeout + config.notice_timeout * 2);
    EXPECT_EQ(counted().keys_ended, 1U);
    EXPECT_FALSE(session->guest->words.notice_posted);
    EXPECT_FALSE(session->guest->berth.has_value()) << "its place is somebody else's";
    EXPECT_EQ(counted().links.peers_lost, 0U);
    write_request({1, kEcho, 0, {}}, grant.epoch);
    run_all(milliseconds(1));
    EXPECT_TRUE(stranger.failed) << "its key opens nothing";
    again = false;
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    check_clean_pools();
}

// Few of its packets arrive, a READ's answer now and then, so that it never falls silent. In the end another client
// gets its place.
TEST_F(ScalerpcGreedy, WhoAnswersReadsSlowlyLosesItsPlace) {
    EndpointConfig config = with_long_answers(16);
    config.shape.blocks = 8;
    config.peer_timeout = milliseconds(100);
    config.features.packing = false;  // a READ for each request
    meet(config);
    for (std::uint32_t sequence = 0; sequence < shape.blocks; ++sequence) {
        (void)put_request({sequence, kEcho, 0, {}}, kStaged, staged(sequence));
    }
    stranger.write_entry(entry(0, shape.blocks));
    stranger.worker->turn(now);
    const Instant began = now;
    Instant last = now;
    stranger.port.fate = [this, &last](std::uint64_t) {
        const bool arrives = now - last > milliseconds(30);
        last = arrives ? now : last;
        return arrives ? 1 : 0;
    };
    while (counted().links.peers_lost == 0 && now - began < milliseconds(200)) {
        run_all(microseconds(5));
    }
    EXPECT_EQ(counted().links.peers_lost, 1U);
    EXPECT_TRUE(server->endpoint->slices().pools().tenants(0).empty());
    EXPECT_TRUE(server->endpoint->slices().pools().tenants(1).empty());
    expect_service();
}

// A peer may not make the server wait for it without end.
TEST_F(ScalerpcGreedy, AQueuePairWaitsForNoPeerWithoutEnd) {
    meet(small(16));
    enter_slice();
    Session* const session = server->endpoint->slices().pools().tenants(0).front();
    EXPECT_NE(session->qp->attributes().ack_timeout, 0);
    EXPECT_LE(session->qp->attributes().ack_timeout, 17);
    EXPECT_EQ(session->qp->attributes().rnr_retry, 6);
}

TEST_F(ScalerpcGreedy, PoolsThatDoNotFitAreRefused) {
    EndpointConfig config;
    config.shape = {BlockShape::kMostBytes, BlockShape::kMostBlocks};
    config.groups.size = 1024;
    config.sessions_max = 1536;
    config.long_answers = 64;
    begin(small(1), 1);
    const auto made = Endpoint::create(config, *server->device, *server->home, server->pool);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text().find("12885098496"), std::string::npos) << made.error().text();
}

}  // namespace
}  // namespace cairn::scalerpc
