// Services and wills of programs: who has which port, what is said for whom that died.
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
    return {1, port(number), false, false};
}
constexpr Claim shared(std::uint16_t number) {
    return {1, port(number), true, false};
}
constexpr Claim any(std::uint16_t from) {
    return {1, port(from), false, true};
}

TEST(BrokerServices, OneProgramHasAServiceAlone) {
    Services services;
    EXPECT_EQ(services.claim(kOne, alone(80)), port(80));
    EXPECT_EQ(services.claim(kTwo, alone(80)), std::nullopt);
    EXPECT_EQ(services.claim(kTwo, shared(80)), std::nullopt);
    EXPECT_EQ(services.claim(kTwo, {1, wire::ServiceId{0x0111'0000 | 80}, false, false}),
              wire::ServiceId{0x0111'0000 | 80});  // of another port space
    EXPECT_EQ(services.holder(port(80)), kOne);
    EXPECT_EQ(services.holder(port(81)), std::nullopt);
    services.release(kTwo, port(80));  // which it has not
    EXPECT_EQ(services.holder(port(80)), kOne);
    services.release(kOne, port(80));
    EXPECT_EQ(services.claim(kTwo, alone(80)), port(80));
}

TEST(BrokerServices, SomeShareAService) {
    Services services;
    EXPECT_EQ(services.claim(kOne, shared(80)), port(80));
    EXPECT_EQ(services.claim(kTwo, alone(80)), std::nullopt);
    EXPECT_EQ(services.claim(kTwo, shared(80)), port(80));
    EXPECT_EQ(services.holder(port(80)), kOne);
    EXPECT_EQ(services.claim(kOne, alone(80)), std::nullopt);  // it would listen, and another is there
    services.forget(kTwo);
    EXPECT_EQ(services.claim(kOne, alone(80)), port(80));
    EXPECT_EQ(services.claim(kTwo, shared(80)), std::nullopt);
    services.forget(kOne);
    EXPECT_EQ(services.size(), 0U);
}

TEST(BrokerServices, AnyPortIsOneThatNobodyHas) {
    Services services;
    EXPECT_EQ(services.claim(kOne, any(0)), port(Services::kFirstPort));
    EXPECT_EQ(services.claim(kTwo, any(0)), port(Services::kFirstPort + 1));
    EXPECT_EQ(services.claim(kOne, any(Services::kLastPort - Services::kFirstPort)), port(Services::kLastPort));
    EXPECT_EQ(services.claim(kOne, any(Services::kLastPort - Services::kFirstPort)), port(Services::kFirstPort + 2));
    services.release(kOne, port(Services::kFirstPort));
    EXPECT_EQ(services.claim(kOne, any(0)), port(Services::kFirstPort));
}

TEST(BrokerServices, AProgramHasABoundedNumberAndAllPortsMayBeGone) {
    Services services;
    std::size_t given = 0;
    while (services.claim(kOne, any(static_cast<std::uint16_t>(given)))) {
        ++given;
    }
    EXPECT_EQ(given, Services::kLastPort - Services::kFirstPort + 1U);
    EXPECT_EQ(services.claim(kTwo, any(7)), std::nullopt);
    for (std::uint16_t number = 1; services.size() < Services::kMostOfOne; ++number) {
        ASSERT_TRUE(services.claim(kOne, alone(number)).has_value());
    }
    EXPECT_EQ(services.claim(kOne, alone(32000)), std::nullopt);
    EXPECT_EQ(services.claim(kTwo, alone(32000)), port(32000));
    services.release(kOne, port(1));
    EXPECT_EQ(services.claim(kOne, alone(32001)), port(32001));
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
    wills.revoke(kTwo, 0x101);  // another's
    EXPECT_EQ(due(), Names{});
    EXPECT_EQ(wills.next_deadline(), Instant::never());
    wills.open(kOne, now);
    EXPECT_EQ(wills.next_deadline(), now);
    EXPECT_EQ(due(), Names{0x101});
    EXPECT_EQ(wills.size(), 1U);
    wills.open(kOne, now);
    EXPECT_EQ(due(), Names{});
}

TEST_F(BrokerWills, AreSaidAgainUntilThePeerAnswersOrIsNotThere) {
    EXPECT_TRUE(wills.leave(kOne, {0x101, {}, {}}));
    EXPECT_TRUE(wills.leave(kOne, {0x201, {}, {}}));
    wills.open(kOne, now);
    EXPECT_EQ(due(), (Names{0x101, 0x201}));
    wills.on_answer(0x101);
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
    EXPECT_TRUE(wills.leave(kOne, {0x101, {}, {}}));  // in the place of the earlier one
    EXPECT_TRUE(wills.leave(kTwo, {0x102, {}, {}}));
}

}  // namespace
}  // namespace cairn::broker
