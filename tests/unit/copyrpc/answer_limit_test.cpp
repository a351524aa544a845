// The longest answers for which request types may be registered.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

class CopyrpcAnswerLimit : public TwoHosts {
protected:
    CopyrpcAnswerLimit() : TwoHosts(small_config(400)) {}
};

TEST_F(CopyrpcAnswerLimit, ATypesLongestAnswerIsOneThatAPeersRingCarries) {
    const SessionId session = connect();
    const std::uint32_t most = Message::answer_max(RingShape(RingShape::kLeastBytes / kBlockBytes).charge_max());
    const Status longer = server.endpoint->set_handler(kEcho, nullptr, nullptr, most + 1);
    ASSERT_FALSE(longer.ok());
    EXPECT_EQ(longer.error().remedy.find("register " + std::to_string(most) + " or less"), 0U);
    (void)post(session, 1);
    run(milliseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::Ok) << "its handler stays";
    EXPECT_TRUE(server.endpoint->set_handler(kEcho, nullptr, nullptr, most).ok());
    (void)post(session, 2);
    run(milliseconds(1));
    EXPECT_EQ(results.at(2), CallStatus::NoHandler);
}

TEST_F(CopyrpcAnswerLimit, ATypesLongestAnswerMayLieInAPeersLargerRingOrTravelByItself) {
    EndpointConfig config = small_config(400);
    config.peer_ring_bytes_max = 64U << 10U;
    const Host larger("10.0.0.3", 33, config);
    const std::uint32_t in_ring = Message::answer_max(RingShape((64U << 10U) / kBlockBytes).charge_max());
    EXPECT_TRUE(larger.endpoint->set_handler(kEcho, nullptr, nullptr, in_ring).ok());
    EXPECT_FALSE(larger.endpoint->set_handler(kEcho, nullptr, nullptr, in_ring + 1).ok());
    EndpointConfig any = config;
    any.peer_ring_bytes_max = 0xffffffffU;
    const Host anyones("10.0.0.6", 66, any);
    EXPECT_TRUE(anyones.endpoint->set_handler(kEcho, nullptr, nullptr, in_ring + 1).ok());
    config.message_bytes_max = 100'000;
    const Host longer("10.0.0.4", 44, config);
    EXPECT_TRUE(longer.endpoint->set_background_handler(kEcho, nullptr, nullptr, 100'000).ok());
    EXPECT_FALSE(longer.endpoint->set_background_handler(kEcho, nullptr, nullptr, 100'001).ok());
    config.message_bytes_max = kLongestOfPool;
    const Host longest("10.0.0.5", 55, config);
    const std::uint32_t most = longest.pool.longest_message(4, std::uint64_t{config.sessions_max} * (68U << 10U));
    EXPECT_TRUE(longest.endpoint->set_handler(kEcho, nullptr, nullptr, most).ok());
    EXPECT_FALSE(longest.endpoint->set_handler(kEcho, nullptr, nullptr, most + 1).ok()) << "there is no memory for it";
}

}  // namespace
}  // namespace cairn::copyrpc
