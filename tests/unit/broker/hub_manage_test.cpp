// Management datagrams and services: which program gets which, and what the broker sends for a program that died.
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

    // Returns a peer's message as it comes to queue pair 1.
    Stray mad_of(const wire::CmMessage& message) { return datagram_of(wire::CmMad{1, message}.bytes()); }
    Stray datagram_of(const wire::MadBytes& mad, const wire::UdHeader& header = mad_header({})) {
        Stray stray;
        stray.remote = peer;
        stray.udp_source_port = kPeerPort;
        const MadDatagram sent({peer, local, kPeerPort}, header, mad);
        std::copy(sent.bytes().begin(), sent.bytes().end(), datagram.begin());
        stray.bytes = datagram;
        return stray;
    }
    // Returns a message that names no program, so that all programs get it.
    static wire::MadBytes for_all() {
        wire::Rej refusal;
        refusal.ids = {wire::CommId{0x77}, {}};
        return wire::CmMad{1, refusal}.bytes();
    }
    void expect_dropped(const Stray& stray, Counter why) {
        const std::uint64_t before = count(why);
        strays.clear();
        hub.on_stray(stray);
        EXPECT_EQ(strays, Clients{});
        EXPECT_EQ(count(why), before + 1);
    }
    // Returns the programs that get the message.
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

    static constexpr std::uint16_t kPeerPort = 0xd000;
    std::array<std::uint8_t, kMadDatagramBytes> datagram{};
    std::uint32_t asks = 0;
};

TEST_F(HubManageTest, WhatNamesAConnectionGoesToTheProgramThatNamedIt) {
    join(1);
    join(2);
    const wire::CommIds to_second{wire::CommId{0x77}, wire::CommId{0xabcd02}};
    EXPECT_EQ(told(wire::Rtu{to_second, {}}), Clients{2});
    EXPECT_EQ(told(wire::Rep{}), Clients{});  // names no program
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

// The program may listen there again in a moment, and holds the request meanwhile.
TEST_F(HubManageTest, ARequestForAPortThatWasGivenBackGoesToWhoGaveIt) {
    join(1);
    join(2);
    say(1, Manage{});
    say(2, Manage{});
    EXPECT_TRUE(claims(2, kService));
    say(2, Release{kService});
    EXPECT_EQ(told(request(kService)), Clients{2});
    wire::SidrReq question;
    question.service_id = wire::ip_service(wire::IpProtocol::Udp, 7999);
    EXPECT_EQ(told(question), Clients{2});
    hub.on_lost(ClientId{2}, now);
    EXPECT_EQ(told(request(kService)), Clients{1});
}

TEST_F(HubManageTest, WhatNamesNothingOfOursGoesToAllThatManage) {
    for (const std::uint64_t id : {1U, 2U, 3U}) {
        join(id);
    }
    say(1, Manage{});
    say(3, Manage{});
    hub.on_stray(datagram_of(for_all()));
    EXPECT_EQ(strays, (Clients{1, 3}));
}

TEST_F(HubManageTest, WhatNoProgramWouldTakeWakesNone) {
    join(1);
    say(1, Manage{});
    wire::UdHeader header = mad_header({});
    header.qkey = Qkey{0x1111};
    expect_dropped(datagram_of(for_all(), header), Counter::WrongQkey);
    header = mad_header({});
    header.from = Qpn{0xabcd02};
    expect_dropped(datagram_of(for_all(), header), Counter::StrangeSender);
    header = mad_header({});
    header.has_immediate = true;
    expect_dropped(datagram_of(for_all(), header), Counter::NoManager);
    for (const net::IpAddress& from : {net::IpAddress(), net::IpAddress::from_v4(0xe0000001),
                                       net::IpAddress::from_v4(0), net::IpAddress::from_v6({0xfe, 0x80, 1})}) {
        Stray stray = datagram_of(for_all());
        stray.remote = from;
        expect_dropped(stray, Counter::StrangeSender);
    }
    Stray stray = datagram_of(for_all());
    stray.remote = net::IpAddress::from_v4(0x7f000003);  // the ICRC shows another sender
    expect_dropped(stray, Counter::BadIcrc);
    stray = datagram_of(for_all());
    datagram[100] ^= 1;
    expect_dropped(stray, Counter::BadIcrc);
    stray = datagram_of(for_all());
    datagram.back() ^= 1;
    expect_dropped(stray, Counter::BadIcrc);
    hub.on_stray(datagram_of(for_all()));
    EXPECT_EQ(strays, Clients{1});
}

// The ICRC is computed with that ID.
TEST_F(HubManageTest, AKernelMayHaveNumberedADatagram) {
    join(1);
    say(1, Manage{});
    port::IpIdDeltas deltas;
    for (const std::uint16_t id : {std::uint16_t{1}, std::uint16_t{0x9c41}}) {
        const Stray stray = datagram_of(for_all());
        const std::uint32_t delta = deltas.delta(kMadDatagramBytes, id);
        for (std::size_t i = 0; i < wire::kIcrcBytes; ++i) {
            datagram[datagram.size() - wire::kIcrcBytes + i] ^= static_cast<std::uint8_t>(delta >> (8 * i));
        }
        hub.on_stray(stray);
    }
    EXPECT_EQ(strays, (Clients{1, 1}));
}

TEST_F(HubManageTest, WhatIsNoMessageIsCounted) {
    join(1);
    say(1, Manage{});
    Stray stray = mad_of(request(kService));
    stray.bytes = stray.bytes.first(stray.bytes.size() - 1);
    hub.on_stray(stray);
    EXPECT_EQ(count(Counter::NoManager), 1U);
    wire::MadBytes mad = wire::CmMad{1, request(kService)}.bytes();
    mad[0] = 9;  // another base version
    hub.on_stray(datagram_of(mad));
    EXPECT_EQ(count(Counter::NoManager), 2U);
    EXPECT_EQ(strays, Clients{});
}

TEST_F(HubManageTest, AMessageThatCameToTheWrongProgramGoesWhereItBelongs) {
    join(1);
    join(2);
    EXPECT_TRUE(claims(1, kService));
    say(2, mad_of(request(kService)));
    say(1, mad_of(request(kService)));  // the kernel may choose that program's socket
    EXPECT_EQ(strays, (Clients{1, 1}));
}

TEST_F(HubManageTest, ConnectionsOfAProgramThatDiedAreEndedForIt) {
    join(1);
    say(1, Will{0x201, peer, {}});
    say(1, Will{0x301, peer, {}});
    say(1, Revoke{0x301});
    hub.on_lost(ClientId{1}, now);
    EXPECT_EQ(said, (std::vector<std::uint32_t>{0x201}));
    EXPECT_EQ(hub.next_deadline(), now + Wills::kBetween);
    EXPECT_FALSE(hub.is_over(now + config.idle));  // it still has a message to send
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

// A program that comes back first must not take the claims of another one.
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
