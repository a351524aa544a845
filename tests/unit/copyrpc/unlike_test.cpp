// Two ends with different rings and receive requests.
#include <random>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

// The client has 4 receive requests and small rings, its server 64 and large ones.
class CopyrpcUnlike : public TwoHosts {
protected:
    CopyrpcUnlike() : TwoHosts(one_session(), {}) {}
    static EndpointConfig one_session() {
        EndpointConfig config;
        config.ring_bytes = 4096;
        config.receives = 4;
        config.sessions_max = 1;  // six receive requests in all, four of them promised
        config.answer_bytes = 20;
        return config;
    }
};

TEST_F(CopyrpcUnlike, APausedEndIsSentAsManyBatchesAsItCanReceive) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 16; ++tag) {
        (void)post(session, tag, 8, kKeep);
    }
    run(milliseconds(1));
    ASSERT_EQ(kept.size(), 16U);
    empty_answers = true;
    for (const RequestHandle& handle : kept) {
        EXPECT_TRUE(server.endpoint->respond(handle, now));
        server.turn(now);
        now = now + microseconds(20);
    }
    run(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 16U);
    EXPECT_EQ(client.worker->engine().rc_counters().of(roce::rc::RcCounter::RnrNakSent), 0U);
}

TEST_F(CopyrpcUnlike, EitherEndKeepsToTheRingOfTheOther) {
    const SessionId session = connect();
    std::mt19937 random(4);
    for (std::uint64_t tag = 1; tag <= 2000; ++tag) {
        ASSERT_EQ(post(session, tag, random() % 21).verdict, PostVerdict::Posted);
        if (tag % 50 == 0) {
            run(milliseconds(1));
        }
    }
    run(milliseconds(100));
    EXPECT_EQ(count(CallStatus::Ok), 2000U);
}

// It has no more to do before an acknowledgement comes, so its worker may rest.
TEST_F(CopyrpcUnlike, AnEndWhoseSendQueueIsFullRests) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 10; ++tag) {  // one batch each, for eight places
        ASSERT_EQ(post(session, tag, 8).verdict, PostVerdict::Posted);
        (void)client.worker->turn(now);
    }
    bool works = true;
    for (int turns = 0; works && turns < 10; ++turns) {
        works = client.worker->turn(now);
    }
    EXPECT_FALSE(works);
    EXPECT_GT(client.worker->next_deadline(), now);
    run(milliseconds(10));
    EXPECT_EQ(count(CallStatus::Ok), 10U);
}

TEST_F(CopyrpcUnlike, AnEndWithoutMemoryForARingConnectsOnceItHasSome) {
    std::vector<rpc::MsgBuffer> all;
    for (std::uint32_t bytes = 1U << 20U; bytes >= 1024; bytes /= 2) {
        for (rpc::MsgBuffer one = client.pool.allocate(bytes); one.valid(); one = client.pool.allocate(bytes)) {
            all.push_back(one);
        }
    }
    const auto remote = net::IpAddress::parse("10.0.0.2").value();
    EXPECT_FALSE(client.endpoint->connect(remote, kService, now).ok());
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    for (rpc::MsgBuffer& one : all) {
        client.pool.release(one);
    }
    (void)post(connect(), 1, 8);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

}  // namespace
}  // namespace cairn::copyrpc
