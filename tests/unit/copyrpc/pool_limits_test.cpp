// Messages that the pools of both ends can hold, and messages that no pool can.
#include <algorithm>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

// Returns the largest size for which the pool of a Host has room besides all rings of such an endpoint.
std::uint32_t longest_of(const Host& host, const EndpointConfig& config) {
    return host.pool.longest_message(4, std::uint64_t{config.sessions_max} * 2 * config.ring_bytes);
}

// Returns memory for a pool of this many messages, at any address: how much of 16 MiB a pool can use depends on it.
std::vector<std::uint8_t> memory_for(std::size_t messages, std::uint32_t bytes) {
    return std::vector<std::uint8_t>((messages + 1) * rpc::MsgPool::bytes_for(bytes));
}

class CopyrpcPoolLimits : public TwoHosts {
protected:
    explicit CopyrpcPoolLimits(std::size_t our_pool_bytes = Host::kPoolBytes)
        : TwoHosts(EndpointConfig{}, EndpointConfig{}, our_pool_bytes) {}
};

TEST_F(CopyrpcPoolLimits, ACallThatNoMemoryEverHoldsIsRefusedAtOnce) {
    const SessionId session = connect();
    EXPECT_EQ(post(session, 1, 9U << 20U).verdict, PostVerdict::TooLong);
    EXPECT_EQ(post(session, 2, longest_of(client, {}) + 1).verdict, PostVerdict::TooLong);
    for (std::uint64_t tag = 3; tag <= 10; ++tag) {
        ASSERT_EQ(post(session, tag).verdict, PostVerdict::Posted);
    }
    run(milliseconds(2));
    EXPECT_EQ(count(CallStatus::Ok), 8U);
}

TEST_F(CopyrpcPoolLimits, ARoomThatNoMemoryEverHoldsIsRefusedAtOnce) {
    const SessionId session = connect();
    const std::uint32_t too_long = longest_of(client, {}) + 1;
    std::vector<std::uint8_t> memory = memory_for(1, too_long);
    rpc::MsgPool elsewhere{memory};
    rpc::MsgBuffer room = elsewhere.allocate(too_long);
    ASSERT_TRUE(room.valid());
    Call call;
    call.type = kEcho;
    call.response = &room;
    EXPECT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::TooLong);
    EXPECT_EQ(client.endpoint->try_post(session, call, now).attempt, Attempt::TooLong);
}

// Each end lends its call's request and room, and has memory for the request of the other one and its answer.
TEST_F(CopyrpcPoolLimits, TheLongestCallsOfBothEndsEndWhereThePoolsHoldNoMore) {
    const SessionId session = connect();
    const std::uint32_t longest = std::min(longest_of(client, {}), longest_of(server, {}));
    ASSERT_GE(longest, 512U << 10U);
    std::vector<std::uint8_t> request(longest, 0x5a);
    std::size_t ended = 0;
    std::vector<rpc::MsgBuffer> rooms(8);
    std::vector<std::uint8_t> memory = memory_for(rooms.size(), longest);
    rpc::MsgPool elsewhere{memory};
    for (std::size_t i = 0; i < rooms.size(); ++i) {
        rooms[i] = elsewhere.allocate(longest);
        ASSERT_TRUE(rooms[i].valid());
        Call call;
        call.type = kEcho;
        call.request = request;
        call.response = &rooms[i];
        call.context = &ended;
        call.completion = [](void* context, const rpc::CallResult& result) {
            EXPECT_EQ(result.status, CallStatus::Ok);
            ++*static_cast<std::size_t*>(context);
        };
        const bool ours = i % 2 == 0;
        Endpoint& endpoint = ours ? *client.endpoint : *server.endpoint;
        ASSERT_EQ(endpoint.post(ours ? session : SessionId{0}, call, now).verdict, PostVerdict::Posted);
    }
    run(milliseconds(400), microseconds(50));
    EXPECT_EQ(ended, rooms.size());
}

TEST_F(CopyrpcPoolLimits, AConfigurationThatItsPoolCannotHoldNamesTheRemedy) {
    EndpointConfig config;
    config.sessions_max = 32;
    config.message_bytes_max = longest_of(client, config);
    const auto made = [&] { return Endpoint::create(config, *client.device, *client.home, client.pool); };
    EXPECT_TRUE(made().ok());
    ++config.message_bytes_max;
    const auto refused = made();
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().remedy.find("at most " + std::to_string(config.message_bytes_max - 1)),
              std::string::npos);
    EXPECT_NE(refused.error().remedy.find("give the pool"), std::string::npos);
    config.peer_ring_bytes_max = RingShape::kMostBytes;
    config.message_bytes_max = kLongestOfPool;
    EXPECT_TRUE(made().ok()) << "the pool holds no rings of all sessions, hence promises no long messages";
    config.message_bytes_max = 1;
    EXPECT_FALSE(made().ok());
}

// A server's pool is smaller than its clients assume.
class CopyrpcUnlikePools : public CopyrpcPoolLimits {
protected:
    CopyrpcUnlikePools() : CopyrpcPoolLimits(64U << 20U) {}
};

TEST_F(CopyrpcUnlikePools, TheServerSaysWhatItsPoolHolds) {
    const std::uint32_t longest = longest_of(server, {});
    ASSERT_GT(longest_of(client, {}), longest);
    const SessionId session =
        client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
    ASSERT_EQ(post(session, 1, longest + 1).verdict, PostVerdict::Posted) << "the server was not heard yet";
    run(milliseconds(5));
    EXPECT_EQ(results.at(1), CallStatus::RequestTooLong);
    EXPECT_EQ(post(session, 2, longest + 1).verdict, PostVerdict::TooLong);
    server.endpoint->set_handler(
        kEcho,
        [](void*, const Request& request) { EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now)); },
        nullptr);
    empty_answers = true;
    ASSERT_EQ(post(session, 3, longest).verdict, PostVerdict::Posted);
    ASSERT_EQ(post(session, 4, 1U << 18U).verdict, PostVerdict::Posted);
    run(milliseconds(100));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
}

}  // namespace
}  // namespace cairn::copyrpc
