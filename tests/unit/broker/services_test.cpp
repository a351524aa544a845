// Services and farewell messages of programs: the owner of each port, and the messages sent for programs that died.
#include <gtest/gtest.h>

#include "lib/broker/services.hpp"
#include "lib/broker/wills.hpp"

namespace cairn::broker {
namespace {

constexpr std::uint64_t kTcp = 0x0106'0000;
constexpr Slot kOne{1};
constexpr Slot kTwo{2};

constexpr wire::ServiceId port(std::uint16_t number) {
    return wire::ServiceId{kTcp | number};
}
constexpr Claim alone(std::uint16_t number) {
    return {1, port(number), false};
}
constexpr Claim shared(std::uint16_t number) {
    return {1, port(number), true};
}

TEST(BrokerServices, OneProgramHasAServiceAlone) {
    Services services;
    EXPECT_TRUE(services.claim(kOne, alone(80)));
    EXPECT_FALSE(services.claim(kTwo, alone(80)));
    EXPECT_FALSE(services.claim(kTwo, shared(80)));
    EXPECT_TRUE(services.claim(kTwo, {1, wire::ServiceId{0x0111'0000 | 80}, false}));  // in another port space
    EXPECT_EQ(services.holder(port(80)), kOne);
    EXPECT_EQ(services.holder(port(81)), std::nullopt);
    services.release(kTwo, port(80));  // which it does not have
    EXPECT_EQ(services.holder(port(80)), kOne);
    services.release(kOne, port(80));
    EXPECT_TRUE(services.claim(kTwo, alone(80)));
}

TEST(BrokerServices, SomeShareAService) {
    Services services;
    EXPECT_TRUE(services.claim(kOne, shared(80)));
    EXPECT_FALSE(services.claim(kTwo, alone(80)));
    EXPECT_TRUE(services.claim(kTwo, shared(80)));
    EXPECT_EQ(services.holder(port(80)), kOne);
    EXPECT_FALSE(services.claim(kOne, alone(80)));  // it would listen, and another program does
    services.forget(kTwo);
    EXPECT_TRUE(services.claim(kOne, alone(80)));
    EXPECT_FALSE(services.claim(kTwo, shared(80)));
    services.forget(kOne);
    EXPECT_EQ(services.holder(port(80)), std::nullopt);
    EXPECT_TRUE(services.claim(kTwo, alone(80)));
}

// The program may listen there again in a moment, in either port space.
TEST(BrokerServices, WhoGaveAPortBackGetsItsRequestsUntilAnotherHasIt) {
    constexpr wire::ServiceId kDatagrams{0x0111'0000 | 80};
    constexpr wire::ServiceId kOfNoPort{80};
    Services services;
    EXPECT_EQ(services.receiver(port(80)), std::nullopt);
    EXPECT_TRUE(services.claim(kOne, alone(80)));
    EXPECT_EQ(services.receiver(port(80)), kOne);
    EXPECT_EQ(services.receiver(kDatagrams), std::nullopt) << "nobody has given it back";
    services.release(kTwo, port(80));
    services.release(kOne, port(80));
    for (const wire::ServiceId service : {port(80), kDatagrams}) {
        EXPECT_EQ(services.holder(service), std::nullopt);
        EXPECT_EQ(services.receiver(service), kOne);
    }
    EXPECT_EQ(services.receiver(port(81)), std::nullopt);
    EXPECT_EQ(services.receiver(kOfNoPort), std::nullopt);
    EXPECT_TRUE(services.claim(kTwo, {1, kOfNoPort, false}));
    EXPECT_EQ(services.receiver(port(80)), kOne) << "that is no port";
    EXPECT_TRUE(services.claim(kTwo, {1, kDatagrams, false}));
    EXPECT_EQ(services.receiver(kDatagrams), kTwo);
    EXPECT_EQ(services.receiver(port(80)), std::nullopt) << "another has claimed the port";
    services.release(kTwo, kDatagrams);
    EXPECT_EQ(services.receiver(port(80)), kTwo) << "the last one";
    services.forget(kTwo);
    EXPECT_EQ(services.receiver(port(80)), std::nullopt);
    EXPECT_TRUE(services.claim(kOne, {1, kOfNoPort, false}));
    services.release(kOne, kOfNoPort);
    EXPECT_EQ(services.receiver(port(80)), std::nullopt) << "it is no port";
}

TEST(BrokerServices, AProgramHasABoundedNumber) {
    Services services;
    std::uint16_t number = 0;
    while (services.claim(kOne, alone(number))) {
        ++number;
    }
    EXPECT_EQ(number, Services::kMostOfOne);
    EXPECT_TRUE(services.claim(kTwo, alone(number)));
    services.release(kOne, port(1));
    EXPECT_TRUE(services.claim(kOne, alone(60001)));
    EXPECT_FALSE(services.claim(kOne, alone(60002)));
}

class BrokerWills : public testing::Test {
protected:
    std::vector<std::uint32_t> due() {
        std::vector<std::uint32_t> names;
        while (const Will* const will = wills.poll(now)) {
            names.push_back(will->name);
        }
        return names;
    }

    Wills wills;
    Instant now{seconds(5).ns};
};

using Names = std::vector<std::uint32_t>;

TEST_F(BrokerWills, AreSaidOnceTheProgramDied) {
    EXPECT_TRUE(wills.leave(kOne, {0x101, {}, {}}));
    EXPECT_TRUE(wills.leave(kOne, {0x201, {}, {}}));
    EXPECT_TRUE(wills.leave(kTwo, {0x102, {}, {}}));
    wills.revoke(kOne, 0x201);
    wills.revoke(kTwo, 0x101);  // another program's
    EXPECT_EQ(due(), Names{});
    EXPECT_EQ(wills.next_deadline(), Instant::never());
    wills.open(kOne, now);
    EXPECT_EQ(wills.next_deadline(), now);
    EXPECT_EQ(due(), Names{0x101});
    wills.open(kOne, now);
    EXPECT_EQ(due(), Names{});
    wills.open(kTwo, now);
    EXPECT_EQ(due(), Names{0x102});
}

TEST_F(BrokerWills, AreSaidAgainUntilThePeerAnswersOrIsNotThere) {
    const net::IpAddress peer = net::IpAddress::from_v4(0x7f000002);
    EXPECT_TRUE(wills.leave(kOne, {0x101, peer, {}}));
    EXPECT_TRUE(wills.leave(kOne, {0x201, peer, {}}));
    wills.open(kOne, now);
    EXPECT_EQ(due(), (Names{0x101, 0x201}));
    wills.on_answer(0x101, peer);
    wills.on_answer(0x201, net::IpAddress::from_v4(0x7f000003));
    for (const std::int64_t times : {1, 2, 4}) {
        EXPECT_EQ(wills.next_deadline(), now + Wills::kBetween * times);
        now = wills.next_deadline() - nanoseconds(1);
        EXPECT_EQ(due(), Names{});
        now = now + nanoseconds(1);
        EXPECT_EQ(due(), Names{0x201});
    }
    EXPECT_FALSE(wills.idle());
    now = wills.next_deadline();
    EXPECT_EQ(due(), Names{});
    EXPECT_TRUE(wills.idle());
}

TEST_F(BrokerWills, OfOneProgramAreBounded) {
    for (std::uint32_t i = 0; i < Wills::kMostOfOne; ++i) {
        ASSERT_TRUE(wills.leave(kOne, {i << 8U | 1U, {}, {}}));
    }
    EXPECT_FALSE(wills.leave(kOne, {0xffff01, {}, {}}));
    EXPECT_TRUE(wills.leave(kOne, {0x101, {}, {}}));  // replaces the earlier one
    EXPECT_TRUE(wills.leave(kTwo, {0x102, {}, {}}));
}

}  // namespace
}  // namespace cairn::broker
