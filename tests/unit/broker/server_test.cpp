// A broker and its programs on this machine's kernel: what each program gets, where datagrams go, and what is left when
// either dies. The broker runs on a thread; for a killed broker the thread ends without notice.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lib/broker/meeting.hpp"
#include "lib/wire/ud.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

TEST_F(ServerTest, ProgramsOfOneAddressGetTheirOwnDatagrams) {
    const RunningBroker broker(place);
    const Program one = enter(0xab);
    const Program two = enter(0xcd);
    ASSERT_NE(one.membership->slot(), two.membership->slot());
    send({one.qpn});
    send({two.qpn});
    EXPECT_EQ(receive(*one.port, 1), (std::vector<std::uint32_t>{one.qpn}));
    EXPECT_EQ(receive(*two.port, 1), (std::vector<std::uint32_t>{two.qpn}));
}

// The kernel steers by the first datagram of a batch.
TEST_F(ServerTest, WhatComesToTheWrongProgramIsLedToItsOwn) {
    const RunningBroker broker(place);
    const Program one = enter(0xab);
    const Program two = enter(0xcd);
    send({one.qpn, two.qpn, one.qpn, two.qpn, 0xab00U | 77U});
    EXPECT_EQ(receive(*one.port, 2), (std::vector<std::uint32_t>{one.qpn, one.qpn}));
    EXPECT_EQ(one.port->counters().of(port::UringCounter::HandedOver), 3U);
    EXPECT_EQ(receive(*two.port, 2), (std::vector<std::uint32_t>{two.qpn, two.qpn}));
}

TEST_F(ServerTest, WhatComesToTheBrokerIsLedFromThere) {
    const RunningBroker broker(place);
    const Program one = enter(0xab);
    const Program two = enter(0xcd);
    send({0xab00U | 77U, one.qpn, two.qpn, one.qpn});  // the first one belongs to no program, and so does the batch
    EXPECT_EQ(receive(*one.port, 2), (std::vector<std::uint32_t>{one.qpn, one.qpn}));
    EXPECT_EQ(receive(*two.port, 1), (std::vector<std::uint32_t>{two.qpn}));
}

TEST_F(ServerTest, ABrokerThatDiesIsFollowedByOneThatKnowsAll) {
    auto broker = std::make_unique<RunningBroker>(place);
    const Program one = enter(0xab);
    const Program two = enter(0xcd);
    broker.reset();
    send({one.qpn});
    send({two.qpn});
    EXPECT_EQ(receive(*one.port, 1), (std::vector<std::uint32_t>{one.qpn}));  // the programs go on alone
    EXPECT_EQ(receive(*two.port, 1), (std::vector<std::uint32_t>{two.qpn}));
    broker = std::make_unique<RunningBroker>(place);
    EXPECT_TRUE(comes([&] { return broker->count(Counter::Rejoined) == 2; }));
    const Program three = enter(0xef);
    EXPECT_EQ(three.membership->slot().value, 3U);
    send({one.qpn, three.qpn, two.qpn});
    EXPECT_EQ(receive(*one.port, 1), (std::vector<std::uint32_t>{one.qpn}));
    EXPECT_EQ(receive(*two.port, 1), (std::vector<std::uint32_t>{two.qpn}));
    EXPECT_EQ(receive(*three.port, 1), (std::vector<std::uint32_t>{three.qpn}));
}

TEST_F(ServerTest, ServicesOutliveTheBroker) {
    const wire::ServiceId service{0x0106'1f90};
    auto broker = std::make_unique<RunningBroker>(place);
    const auto one = join();
    const auto two = join();
    const auto granted = one->voice().claim(service, false);
    ASSERT_TRUE(granted.ok());
    EXPECT_EQ(granted.value(), service);
    const auto taken = two->voice().claim(service, false);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.reason(), ClaimRefusal::Taken);
    broker.reset();
    const auto unheard = two->voice().claim(service, false, milliseconds(1));
    ASSERT_FALSE(unheard.ok());
    EXPECT_EQ(unheard.reason(), ClaimRefusal::NoAnswer);
    broker = std::make_unique<RunningBroker>(place);
    const auto later = two->voice().claim(service, false, seconds(10));  // asked before the broker is back
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.reason(), ClaimRefusal::Taken);
    one->voice().release(service);
    EXPECT_TRUE(comes([&] { return two->voice().claim(service, false).ok(); }));
}

// The peer has its own listener, as a host of another machine would.
TEST_F(ServerTest, ConnectionsOfAProgramThatLeftAreEndedForIt) {
    const RunningBroker broker(place);
    auto one = join();
    port::UringPortConfig own;
    own.local = beside;
    own.udp_port = place.udp_port;
    const auto peer = std::move(port::UringPort::open(own).value());
    Will will{0x4201, beside, {}};
    will.mad.fill(0x5a);
    one->voice().leave(will);
    one->voice().leave({0x4301, beside, {}});
    one->voice().revoke(0x4301);
    one.reset();
    std::array<port::PacketRef, 64> burst;
    std::size_t got = 0;
    EXPECT_TRUE(comes([&] { return (got = peer->receive_burst(burst, now)) != 0; }));
    ASSERT_EQ(got, 1U);
    EXPECT_TRUE(burst[0].icrc_ok);
    ASSERT_EQ(burst[0].len, wire::kUdOverheadBytes + wire::kMadBytes);
    EXPECT_EQ(reinterpret_cast<const wire::RawBth*>(burst[0].data)->dest_qpn.get(), 1U);
    EXPECT_TRUE(std::equal(will.mad.begin(), will.mad.end(), burst[0].data + sizeof(wire::RawUd)));
    peer->release_burst(std::span(burst).first(1));
}

TEST_F(ServerTest, ASlotIsFreeOnceItsProgramLeaves) {
    HubConfig quick;
    quick.rest = milliseconds(1);
    const RunningBroker broker(place, quick);
    auto one = join();
    const Slot slot = one->slot();
    one.reset();
    EXPECT_TRUE(comes([&] { return join()->slot() == slot; }));
}

// The program's children hold its descriptors, but the broker watches the process.
TEST_F(ServerTest, ASlotIsFreeOnceItsProgramIsKilledWhoeverHoldsItsDescriptors) {
    HubConfig quick;
    quick.rest = milliseconds(1);
    const RunningBroker broker(place, quick);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t program = fork();
    if (program == 0) {
        Meeting met = ask_for_slot({place, {}, seconds(5)});
        const std::uint8_t slot = std::holds_alternative<Welcome>(met) ? std::get<Welcome>(met).slot.value : 0;
        const pid_t child = static_cast<pid_t>(syscall(SYS_fork));  // without the actions of the library's fork()
        if (child == 0) {
            pause();
            _exit(0);
        }
        const bool written = write(pipe[1], &slot, 1) == 1 && write(pipe[1], &child, sizeof(child)) == sizeof(child);
        pause();
        _exit(written ? 0 : 1);
    }
    std::uint8_t slot = 0;
    pid_t child = 0;
    ASSERT_EQ(read(pipe[0], &slot, 1), 1);
    ASSERT_EQ(read(pipe[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
    EXPECT_EQ(slot, 1);
    kill(program, SIGKILL);
    waitpid(program, nullptr, 0);
    EXPECT_TRUE(comes([&] { return join()->slot().value == slot; }));
    kill(child, SIGKILL);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

// The broker starts after the program, so only that program inherits its sockets.
TEST_F(ServerTest, AChildOfForkHoldsNoSocketOfItsParents) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t program = fork();
    if (program == 0) {
        std::unique_ptr<Membership> one;
        for (int tries = 0; tries < 1000 && one == nullptr; ++tries) {
            one = join();
            usleep(5000);
        }
        const pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        _exit(one != nullptr && write(pipe[1], &child, sizeof(child)) == sizeof(child) ? 0 : 1);
    }
    auto broker = std::make_unique<RunningBroker>(place);
    pid_t child = 0;
    ASSERT_EQ(read(pipe[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
    int status = 0;
    waitpid(program, &status, 0);
    EXPECT_EQ(status, 0);
    broker.reset();
    auto opened = port::UdpSocket::open({place.local, place.udp_port});
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().text());
    kill(child, SIGKILL);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(ServerTest, APortThatSomethingElseHasIsNotShared) {
    HubConfig quick;
    quick.patience = milliseconds(100);
    const RunningBroker broker(place, quick);
    const auto holder = port::UdpSocket::open({place.local, place.udp_port});
    ASSERT_TRUE(holder.ok());
    auto joined = Membership::join(config());
    ASSERT_TRUE(joined.ok());
    EXPECT_EQ(joined.value().membership, nullptr);
    EXPECT_NE(joined.value().why_alone.find("is taken"), std::string::npos) << joined.value().why_alone;
}

TEST_F(ServerTest, WithoutABrokerAProgramIsAlone) {
    auto joined = Membership::join(config());
    ASSERT_TRUE(joined.ok());
    EXPECT_EQ(joined.value().membership, nullptr);
    EXPECT_NE(joined.value().why_alone.find("no broker"), std::string::npos) << joined.value().why_alone;
    MembershipConfig with = config();
    with.program = "/nowhere/cairn-broker";
    joined = Membership::join(with);
    ASSERT_TRUE(joined.ok());
    EXPECT_NE(joined.value().why_alone.find("'/nowhere/cairn-broker': No such file"), std::string::npos)
        << joined.value().why_alone;
    EXPECT_TRUE(comes([&] { return listen_at(place).is_open(); }));  // the attempt left nothing behind
}

TEST_F(ServerTest, ItEndsWhenNobodyNeedsItAndFreesTheAddress) {
    HubConfig quick;
    quick.idle = milliseconds(50);
    const RunningBroker broker(place, quick);
    { const auto one = join(); }
    EXPECT_TRUE(comes([&] { return broker.is_over(); }));
    EXPECT_TRUE(port::UdpSocket::open({place.local, place.udp_port}).ok());
    EXPECT_TRUE(comes([&] { return listen_at(place).is_open(); }));
}

}  // namespace
}  // namespace cairn::broker
