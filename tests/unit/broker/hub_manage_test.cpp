// Management datagrams and services: which program is told what, and what is said for one that died.
#include <cstring>

#include "lib/wire/cm_message.hpp"
#include "lib/wire/ip_cm.hpp"
#include "lib/wire/ud.hpp"
#include "tests/unit/broker/hub_fixture.hpp"

namespace cairn::broker {
namespace {

using Clients = std::vector<std::uint64_t>;

class HubManageTest : public HubTest {
protected:
    static constexpr wire::ServiceId kService = wire::ip_service(wire::IpProtocol::Tcp, 7999);

    // A message of a peer, as it comes to queue pair 1.
    Stray mad_of(const wire::CmMessage& message) {
        wire::UdHeader ud;
        ud.to = ud.from = wire::kGeneralServicesQpn;
        const wire::RawUd header = ud.raw(wire::kMadBytes);
        const wire::MadBytes mad = wire::CmMad{1, message}.bytes();
        std::memcpy(datagram.data(), &header, sizeof(header));
        std::memcpy(datagram.data() + sizeof(header), mad.data(), mad.size());
        Stray stray;
        stray.bytes = datagram;
        return stray;
    }
    // Who is told of it.
    Clients told(const wire::CmMessage& message) {
        strays.clear();
        hub.on_stray(mad_of(message));
        return strays;
    }
    static wire::Req request(wire::ServiceId service) {
        wire::Req req;
        req.service_id = service;
        req.local_comm_id = wire::CommId{0x9901};
        req.path_mtu = wire::path_mtu_of(1024);
        return req;
    }
    bool claims(std::uint64_t id, wire::ServiceId service, bool shares = false) {
        const std::size_t before = answers.size();
        say(id, Claim{++asks, service, shares});
        EXPECT_EQ(answers.size(), before + 1);
        EXPECT_EQ(answers.back().first, id);
        EXPECT_EQ(answers.back().second.ask, asks);
        return answers.back().second.granted;
    }

    std::array<std::uint8_t, wire::kUdOverheadBytes + wire::kMadBytes> datagram{};
    std::uint32_t asks = 0;
};

TEST_F(HubManageTest, WhatNamesAConnectionGoesToTheProgramThatNamedIt) {
    join(1);
    join(2);
    const wire::CommIds to_second{wire::CommId{0x77}, wire::CommId{0xabcd02}};
    EXPECT_EQ(told(wire::Rtu{to_second, {}}), Clients{2});
    EXPECT_EQ(told(wire::Rep{}), Clients{});  // names nobody
    wire::Rej refusal;
    refusal.ids = to_second;
    EXPECT_EQ(told(refusal), Clients{2});
    EXPECT_EQ(told(wire::Rtu{{wire::CommId{0x77}, wire::CommId{0xabcd03}}, {}}), Clients{});
    EXPECT_EQ(count(Counter::Managed), 2U);
    EXPECT_EQ(count(Counter::NoManager), 2U);
}

TEST_F(HubManageTest, ARequestGoesToWhoHasItsService) {
    join(1);
    join(2);
    EXPECT_TRUE(claims(2, kService));
    EXPECT_FALSE(claims(1, kService));
    EXPECT_EQ(count(Counter::ServiceTaken), 1U);
    EXPECT_EQ(told(request(kService)), Clients{2});
    say(2, Release{kService});
    EXPECT_TRUE(claims(1, kService));
    EXPECT_EQ(told(request(kService)), Clients{1});
    hub.on_lost(ClientId{1}, now);
    EXPECT_EQ(told(request(kService)), Clients{});
    EXPECT_TRUE(claims(2, kService));
}

TEST_F(HubManageTest, AServiceWhoseGrantCannotBeSaidIsNobodys) {
    join(1);
    join(2);
    full = true;
    say(1, Claim{1, kService, false});
    EXPECT_EQ(count(Counter::NoRoom), 1U);
    full = false;
    EXPECT_EQ(hub.programs().services().holder(kService), std::nullopt);
    EXPECT_TRUE(claims(2, kService));
}

TEST_F(HubManageTest, WhoIsNotToldOfAChangeHasItsServiceAsBefore) {
    join(1);
    join(2);
    EXPECT_TRUE(claims(1, kService, true));
    full = true;
    say(1, Claim{100, kService, false});
    full = false;
    EXPECT_EQ(hub.programs().services().holder(kService), Slot{1});
    EXPECT_TRUE(claims(2, kService, true));
}

TEST_F(HubManageTest, ARequestForAServiceOfNobodyGoesToWhoRefusesIt) {
    join(1);
    join(2);
    EXPECT_EQ(told(request(kService)), Clients{});
    say(2, Manage{});
    EXPECT_EQ(told(request(kService)), Clients{2});
}

TEST_F(HubManageTest, WhatNamesNothingOfOursGoesToAllThatManage) {
    for (const std::uint64_t id : {1U, 2U, 3U}) {
        join(id);
    }
    say(1, Manage{});
    say(3, Manage{});
    wire::Rej refusal;
    refusal.ids = {wire::CommId{0x77}, {}};
    EXPECT_EQ(told(refusal), (Clients{1, 3}));
}

TEST_F(HubManageTest, WhatIsNoMessageIsCounted) {
    join(1);
    say(1, Manage{});
    Stray stray = mad_of(request(kService));
    stray.bytes = stray.bytes.first(stray.bytes.size() - 1);
    hub.on_stray(stray);
    EXPECT_EQ(count(Counter::NoManager), 1U);
    stray = mad_of(request(kService));
    datagram[sizeof(wire::RawUd)] = 9;  // another base version
    hub.on_stray(stray);
    EXPECT_EQ(count(Counter::NoManager), 2U);
    EXPECT_EQ(strays, Clients{});
}

TEST_F(HubManageTest, AMessageThatCameToTheWrongProgramGoesWhereItBelongs) {
    join(1);
    join(2);
    EXPECT_TRUE(claims(1, kService));
    say(2, mad_of(request(kService)));
    say(1, mad_of(request(kService)));  // it came to that program's socket, as it may
    EXPECT_EQ(strays, (Clients{1, 1}));
}

TEST_F(HubManageTest, ConnectionsOfAProgramThatDiedAreEndedForIt) {
    join(1);
    say(1, Will{0x201, {}, {}});
    say(1, Will{0x301, {}, {}});
    say(1, Revoke{0x301});
    hub.on_lost(ClientId{1}, now);
    EXPECT_EQ(said, (std::vector<std::uint32_t>{0x201}));
    EXPECT_EQ(hub.next_deadline(), now + Wills::kBetween);
    EXPECT_FALSE(hub.is_over(now + config.idle));  // it has something to say
    pass(Wills::kBetween);
    EXPECT_EQ(said.size(), 2U);
    hub.on_stray(mad_of(wire::Drep{{wire::CommId{0x77}, wire::CommId{0x201}}, {}}));
    EXPECT_EQ(hub.next_deadline(), now + config.idle);
    pass(config.idle);
    EXPECT_EQ(said.size(), 2U);
    EXPECT_TRUE(hub.is_over(now));
    EXPECT_EQ(count(Counter::WillsSent), 2U);
}

TEST_F(HubManageTest, WhatIsSaidAgainNeedsNoAnswer) {
    join(1);
    say(1, Claim{0, kService, false});
    EXPECT_TRUE(answers.empty());
    EXPECT_EQ(hub.programs().services().holder(kService), Slot{1});
    EXPECT_EQ(ended, Clients{});
}

// Who comes back first must not take what another had.
TEST_F(HubManageTest, BehindABrokerThatDiedNewClaimsWaitForOldOnes) {
    brought = 3;
    connect(1);
    say(1, Rejoin{Slot{1}, 3});
    say(1, Sockets{3});
    say(1, Claim{1, kService, false});
    EXPECT_TRUE(answers.empty());
    EXPECT_EQ(hub.next_deadline(), now + config.patience);
    connect(2);
    say(2, Rejoin{Slot{2}, 3});
    say(2, Sockets{3});
    say(2, Claim{0, kService, false});
    pass(config.patience - nanoseconds(1));
    EXPECT_TRUE(answers.empty());
    pass(nanoseconds(1));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers.back(), (std::pair<std::uint64_t, Claimed>{1, {1, kService, false}}));
    EXPECT_EQ(hub.programs().services().holder(kService), Slot{2});
    EXPECT_EQ(hub.next_deadline(), Instant::never());
    EXPECT_TRUE(claims(1, wire::ServiceId{7}));
}

TEST_F(HubManageTest, OnlyProgramsSpeakOfServices) {
    connect(1);
    say(1, Manage{});
    connect(2);
    say(2, Claim{});
    connect(3);
    say(3, Will{});
    join(4);
    say(4, Claimed{});
    EXPECT_EQ(ended, (Clients{1, 2, 3, 4}));
    EXPECT_EQ(count(Counter::Garbage), 4U);
}

}  // namespace
}  // namespace cairn::broker
