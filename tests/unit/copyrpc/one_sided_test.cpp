// READs and WRITEs of memory that the ends of a session open to each other.
#include <algorithm>
#include <numeric>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr verbs::Rights kRead{verbs::Right::RemoteRead};
constexpr verbs::Rights kWrite{verbs::Right::RemoteWrite};

class CopyrpcOneSided : public TwoHosts {
protected:
    CopyrpcOneSided() {
        std::iota(theirs.begin(), theirs.end(), std::uint8_t{1});
        session = connect();
    }
    // Returns memory of the server, opened to the client of its only session.
    Place opened(verbs::Rights rights) {
        const auto place = server.endpoint->one_sided().open(SessionId{0}, theirs, rights);
        EXPECT_TRUE(place.ok());
        return place.value();
    }
    OneSidedWork work(const Place& place, std::uint64_t tag = 1) {
        OneSidedWork one{place, ours, nullptr, this, tag};
        one.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CopyrpcOneSided*>(context);
            ASSERT_EQ(self.ended.count(result.tag), 0U) << "completed twice";
            self.ended[result.tag] = result.status;
            self.waited = result.latency;
            if (result.status == CallStatus::Ok) {
                EXPECT_EQ(result.response.data(), self.ours.data());
                EXPECT_EQ(result.response.size(), self.ours.size());
            }
        };
        return one;
    }
    PostVerdict read(const Place& place, std::uint64_t tag = 1) {
        return client.endpoint->one_sided().read(session, work(place, tag), now);
    }
    PostVerdict write(const Place& place, std::uint64_t tag = 1) {
        return client.endpoint->one_sided().write(session, work(place, tag), now);
    }

    SessionId session{};
    std::vector<std::uint8_t> ours = std::vector<std::uint8_t>(700'000);
    std::vector<std::uint8_t> theirs = std::vector<std::uint8_t>(700'000);
    std::map<std::uint64_t, CallStatus> ended;
    Duration waited{-1};  // the last one
};

// The program's clock goes on after the last turn, whose time is the endpoint's last one.
TEST_F(CopyrpcOneSided, ALatencyThatEndsWithTheEndpointIsNotNegative) {
    OneSidedWork last = work(opened(kRead));
    last.ends_with_endpoint = true;
    now = now + microseconds(100);
    ASSERT_EQ(client.endpoint->one_sided().read(session, last, now), PostVerdict::Posted);
    client.endpoint.reset();
    EXPECT_EQ(ended[1], CallStatus::Disconnected);
    EXPECT_EQ(waited, Duration{});
}

TEST_F(CopyrpcOneSided, WhatThePeerOpenedIsRead) {
    const Place place = opened(kRead);
    ASSERT_EQ(read(place), PostVerdict::Posted);
    EXPECT_TRUE(ended.empty()) << "never before it returns";
    run(milliseconds(20));
    EXPECT_EQ(ended[1], CallStatus::Ok);
    EXPECT_EQ(ours, theirs);
    EXPECT_EQ(client.endpoint->statistics().one_sided.reads, 1U);
}

TEST_F(CopyrpcOneSided, ItIsWrittenInTheOrderOfThePosts) {
    const Place place = opened(kWrite);
    std::fill(ours.begin(), ours.end(), std::uint8_t{9});
    ASSERT_EQ(write(place, 1), PostVerdict::Posted);
    ASSERT_EQ(write(place, 2), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_EQ(ended, (std::map<std::uint64_t, CallStatus>{{1, CallStatus::Ok}, {2, CallStatus::Ok}}));
    EXPECT_EQ(ours, theirs);
}

TEST_F(CopyrpcOneSided, AReadHasWhatWasThereBeforeTheWriteThatFollows) {
    const Place place = opened(kRead | verbs::Right::RemoteWrite);
    const std::vector<std::uint8_t> before = theirs;
    std::vector<std::uint8_t> news(theirs.size(), 7);
    ASSERT_EQ(read(place, 1), PostVerdict::Posted);
    OneSidedWork writes = work(place, 2);
    writes.memory = news;
    writes.completion = nullptr;
    ASSERT_EQ(client.endpoint->one_sided().write(session, writes, now), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_EQ(ended[1], CallStatus::Ok);
    EXPECT_EQ(ours, before);
    EXPECT_EQ(theirs, news);
}

// The reader learns that the session ended, and is not accused of a broken rule.
TEST_F(CopyrpcOneSided, WhoOpenedAPlaceMayEndTheSession) {
    ASSERT_EQ(read(opened(kRead)), PostVerdict::Posted);
    run(microseconds(40));
    ASSERT_TRUE(ended.empty());
    server.endpoint->disconnect(SessionId{0}, now);
    run(milliseconds(20));
    EXPECT_EQ(ended[1], CallStatus::Disconnected);
    EXPECT_EQ(client.endpoint->statistics().links.peers_lost, 0U);
}

// No event reports that others give keys back.
TEST_F(CopyrpcOneSided, AnOperationWithoutAKeyIsTriedAgainSoon) {
    const Place place = opened(kRead);
    std::vector<std::unique_ptr<verbs::Mr>> all;
    const auto pd = client.device->create_pd();
    for (;;) {
        auto key = client.device->register_memory(*pd, ours, kRead, 0);
        if (!key.ok()) {
            break;
        }
        all.push_back(std::move(key).value());
    }
    ASSERT_EQ(read(place), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_TRUE(ended.empty());
    EXPECT_LE(client.worker->next_deadline(), now + microseconds(50));
    all.clear();
    run(milliseconds(20));
    EXPECT_EQ(ended[1], CallStatus::Ok);
    EXPECT_GT(client.worker->next_deadline(), now + microseconds(50));
}

TEST_F(CopyrpcOneSided, CallsPassBetweenThePieces) {
    const Place place = opened(kRead);
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        ASSERT_EQ(read(place, tag), PostVerdict::Posted);
    }
    for (std::uint64_t tag = 0; tag < 20; ++tag) {
        ASSERT_EQ(post(session, tag).verdict, PostVerdict::Posted);
    }
    for (int turns = 0; count(CallStatus::Ok) != 20 && turns < 10'000; ++turns) {
        run(microseconds(20));
    }
    EXPECT_EQ(count(CallStatus::Ok), 20U);
    EXPECT_LT(ended.size(), 4U);
    run(milliseconds(50));
    EXPECT_EQ(ended.size(), 4U);
    EXPECT_EQ(ours, theirs);
}

// The connection ends, as for any user of RDMA, and so do its operations.
TEST_F(CopyrpcOneSided, WhoNamesAPlaceThatIsNotOpenLosesHisConnection) {
    const Place place = opened(kRead);
    EXPECT_TRUE(server.endpoint->one_sided().close(SessionId{0}, place));
    EXPECT_FALSE(server.endpoint->one_sided().close(SessionId{0}, place));
    ASSERT_EQ(post(session, 7, 32, kKeep).verdict, PostVerdict::Posted);
    run(milliseconds(1));
    ASSERT_EQ(read(place), PostVerdict::Posted);
    run(milliseconds(20));
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_NE(ended[1], CallStatus::Ok);
    EXPECT_EQ(results.size(), 1U);
    EXPECT_NE(results[7], CallStatus::Ok);
    EXPECT_EQ(ours, std::vector<std::uint8_t>(ours.size()));
    EXPECT_EQ(read(place), PostVerdict::NoSuchSession);
}

TEST_F(CopyrpcOneSided, APlaceIsOpenForWhatItWasOpenedFor) {
    ASSERT_EQ(write(opened(kRead)), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_NE(ended[1], CallStatus::Ok);
    EXPECT_EQ(theirs[0], 1);
}

TEST_F(CopyrpcOneSided, APlaceIsOpenToOneSession) {
    const Place place = opened(kRead);
    const SessionId first = session;
    session = connect();
    ASSERT_EQ(read(place), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_NE(ended[1], CallStatus::Ok);
    session = first;
    ASSERT_EQ(read(place, 2), PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_EQ(ended[2], CallStatus::Ok);
}

TEST_F(CopyrpcOneSided, WhatCannotBeIsRefused) {
    Place place = opened(kRead);
    EXPECT_FALSE(server.endpoint->one_sided().open(SessionId{0}, theirs, {}).ok());
    EXPECT_FALSE(server.endpoint->one_sided().open(SessionId{0}, theirs, verbs::Right::RemoteAtomic).ok());
    EXPECT_FALSE(server.endpoint->one_sided().open(SessionId{9}, theirs, kRead).ok());
    EXPECT_EQ(client.endpoint->one_sided().read(SessionId{9}, work(place), now), PostVerdict::NoSuchSession);
    --place.bytes;
    EXPECT_EQ(read(place), PostVerdict::TooLong);
    OneSidedWork empty = work(place);
    empty.memory = {};
    EXPECT_EQ(client.endpoint->one_sided().read(session, empty, now), PostVerdict::TooLong);
    EXPECT_TRUE(ended.empty());
}

TEST_F(CopyrpcOneSided, AFullSessionSaysSo) {
    const Place place = opened(kRead);
    ours.resize(1);
    for (std::uint64_t tag = 0; tag < OneSided::kMostPending; ++tag) {
        ASSERT_EQ(read(place, tag), PostVerdict::Posted);
    }
    EXPECT_EQ(read(place, 5000), PostVerdict::Full);
    run(milliseconds(100));
    EXPECT_EQ(ended.size(), OneSided::kMostPending);
    EXPECT_EQ(read(place, 5000), PostVerdict::Posted);
}

// Afterwards the memory belongs to its owner: no operation writes to it later.
TEST_F(CopyrpcOneSided, TheEndOfASessionEndsWhatIsUnderWay) {
    const Place place = opened(kRead);
    ASSERT_EQ(read(place), PostVerdict::Posted);
    run(microseconds(40));
    ASSERT_TRUE(ended.empty());
    client.endpoint->disconnect(session, now);
    EXPECT_EQ(ended[1], CallStatus::Disconnected);
    std::fill(ours.begin(), ours.end(), std::uint8_t{0});
    run(milliseconds(20));
    EXPECT_EQ(ours, std::vector<std::uint8_t>(ours.size()));
    run(seconds(9), milliseconds(5));
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
}

rpc::Task<> reads(Endpoint& endpoint, SessionId session, Place place, std::span<std::uint8_t> into, const Instant& now,
                  std::vector<CallStatus>& said) {
    const rpc::CallResult first = co_await one_sided_read(endpoint, session, place, into, now);
    said.push_back(first.status);
    const rpc::CallResult second = co_await one_sided_read(endpoint, SessionId{9}, place, into, now);
    said.push_back(second.status);
    const rpc::CallResult third = co_await one_sided_read(endpoint, session, place, into, now);
    said.push_back(third.status);
    endpoint.disconnect(session, now);
    const rpc::CallResult fourth = co_await one_sided_read(endpoint, session, place, into, now);
    said.push_back(fourth.status);
}

TEST_F(CopyrpcOneSided, ACoroutineAwaitsIt) {
    std::vector<CallStatus> said;
    rpc::start(reads(*client.endpoint, session, opened(kRead), ours, now, said));
    EXPECT_TRUE(said.empty());
    for (int turns = 0; said.size() != 2 && turns < 1000; ++turns) {
        run(microseconds(20));
    }
    EXPECT_EQ(said, (std::vector<CallStatus>{CallStatus::Ok, CallStatus::Disconnected}));
    EXPECT_EQ(ours, theirs);
    client.endpoint.reset();
    EXPECT_EQ(said.size(), 4U) << "each of them once";
    EXPECT_EQ(said[2], CallStatus::Disconnected);
    EXPECT_EQ(said[3], CallStatus::Disconnected);
}

}  // namespace
}  // namespace cairn::copyrpc
