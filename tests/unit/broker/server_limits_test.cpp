// The refusals of a broker: programs of other users, more programs than slots, silent connections.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "lib/broker/ask_counters.hpp"
#include "lib/broker/meeting.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

class ServerLimitsTest : public ServerTest {};

TEST_F(ServerLimitsTest, AnAddressWithAllSlotsLentSaysSo) {
    HubConfig few;
    few.sockets = 3;
    const RunningBroker broker(place, few);
    const auto one = join();
    const auto two = join();
    auto joined = Membership::join(config());
    ASSERT_FALSE(joined.ok());
    EXPECT_NE(joined.error().text().find("programs use UDP " + place.text() + " already"), std::string::npos);
}

TEST_F(ServerLimitsTest, ProgramsOfAnotherUserAreTurnedAwayWhileTheAddressIsUsed) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs another user";
    }
    const RunningBroker broker(place);
    auto used = join();
    const auto as_another = [this] {
        EXPECT_EQ(seteuid(65534), 0);
        auto joined = Membership::join(config());
        EXPECT_EQ(seteuid(0), 0);
        return joined;
    };
    auto joined = as_another();
    ASSERT_FALSE(joined.ok());
    const std::string text = joined.error().text();
    EXPECT_NE(text.find("UDP " + place.text() + " belongs to programs of root (uid 0)"), std::string::npos) << text;
    EXPECT_NE(text.find("their broker is process " + std::to_string(getpid())), std::string::npos) << text;
    EXPECT_GE(broker.count(Counter::AnotherUser), 1U);
    used.reset();
    joined = as_another();
    ASSERT_TRUE(joined.ok()) << joined.error().text();
    EXPECT_EQ(joined.value().why_alone, "there is no broker, and none is to be started");
}

// The broker's own timeout is long here, and no program waits for it.
TEST_F(ServerLimitsTest, AnAddressThatNobodyUsesIsFreeForAnotherUser) {
    HubConfig config_of_hub;
    config_of_hub.idle = seconds(1000);
    const RunningBroker broker(place, config_of_hub, geteuid() + 1);
    const auto joined = Membership::join(config());
    ASSERT_TRUE(joined.ok()) << joined.error().text();
    EXPECT_EQ(joined.value().why_alone, "there is no broker, and none is to be started");
    EXPECT_TRUE(broker.is_over());
}

class ServerBacklogTest : public ServerTest {
protected:
    // Makes connections before the broker looks, as on a busy machine.
    [[nodiscard]] std::vector<OwnedFd> connect(std::size_t count) const {
        std::vector<OwnedFd> made;
        while (made.size() < count) {
            made.push_back(connect_to(place, seconds(10)));
        }
        return made;
    }
    [[nodiscard]] std::vector<OwnedFd> connect_as_another(std::size_t count) const {
        EXPECT_EQ(seteuid(65534), 0);
        std::vector<OwnedFd> made = connect(count);
        EXPECT_EQ(seteuid(0), 0);
        return made;
    }
    [[nodiscard]] OwnedFd ask() const {
        OwnedFd asks = connect_to(place, seconds(10));
        EXPECT_TRUE(send_message(asks.get(), Join{}, {}, true));
        return asks;
    }
    static std::optional<Message> answer(const OwnedFd& connection) {
        Packet packet;
        const bool comes = receive_packet(connection.get(), packet, true) == Received::Packet;
        return comes ? parse_message(packet.bytes) : std::nullopt;
    }
    static void expect_lent(const OwnedFd& connection) {
        const std::optional<Message> said = answer(connection);
        EXPECT_TRUE(said && std::holds_alternative<Lent>(*said));
    }
    static void expect_turned_away(const OwnedFd& connection) {
        const std::optional<Message> said = answer(connection);
        ASSERT_TRUE(said && std::holds_alternative<Refused>(*said));
        EXPECT_EQ(std::get<Refused>(*said).why, Refusal::AnotherUser);
    }

    OwnedFd listener = RunningBroker::listen_soon(place);
};

TEST_F(ServerBacklogTest, AProgramThatAskedBeforeAnotherUserCameIsServed) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs another user";
    }
    const OwnedFd first = ask();
    const std::vector<OwnedFd> others = connect_as_another(1);
    const RunningBroker broker(place, std::move(listener), {}, 0);
    expect_lent(first);
    expect_turned_away(others.front());
}

TEST_F(ServerBacklogTest, AProgramThatAsksBehindThoseOfAnotherUserIsServed) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs another user";
    }
    const std::vector<OwnedFd> others = connect_as_another(40);  // more than are accepted at once
    const OwnedFd last = ask();
    const RunningBroker broker(place, std::move(listener), {}, 0);
    expect_lent(last);
    for (const OwnedFd& each : others) {
        expect_turned_away(each);
    }
}

TEST_F(ServerBacklogTest, AProgramThatAsksABrokerThatIsAboutToEndIsServed) {
    const std::vector<OwnedFd> silent = connect(40);
    const OwnedFd last = ask();
    HubConfig config_of_hub;
    config_of_hub.idle = Duration{};
    const RunningBroker broker(place, std::move(listener), config_of_hub, geteuid());
    expect_lent(last);
}

TEST_F(ServerLimitsTest, EachOfManyProgramsHasItsOwnSlot) {
    constexpr std::size_t kPrograms = kMostSockets - 1;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit many{before.rlim_max, before.rlim_max};  // this one process is all programs and the broker
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
    const RunningBroker broker(place);
    std::vector<Welcome> programs;
    for (std::size_t i = 0; i < kPrograms; ++i) {
        Meeting met = ask_for_slot({place, {}, seconds(10)});
        ASSERT_TRUE(std::holds_alternative<Welcome>(met)) << i;
        programs.push_back(std::move(std::get<Welcome>(met)));
        programs.back().sockets.clear();
        ASSERT_EQ(programs.back().slot.value, i + 1);
    }
    Meeting met = ask_for_slot({place, {}, seconds(10)});
    ASSERT_TRUE(std::holds_alternative<Refusal>(met));
    EXPECT_EQ(std::get<Refusal>(met), Refusal::Full);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ServerLimitsTest, SilentAndSenselessConnectionsGiveWay) {
    HubConfig quick;
    quick.silence = milliseconds(300);
    const RunningBroker broker(place, quick);
    std::vector<OwnedFd> silent;
    for (int i = 0; i < 500; ++i) {
        silent.push_back(connect_to(place, seconds(5)));
        ASSERT_TRUE(silent.back().is_open());
        if (i % 2 == 0) {
            static_cast<void>(send_packet(silent.back().get(), std::array<std::uint8_t, 5>{1, 2, 3, 4, 5}, {}, false));
        }
    }
    EXPECT_TRUE(comes([&] {
        Meeting met = ask_for_slot({place, {}, milliseconds(100)});
        return std::holds_alternative<Welcome>(met);
    }));
    const auto hung_up = [](const OwnedFd& fd) {
        std::uint8_t octet = 0;
        return recv(fd.get(), &octet, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
    };
    EXPECT_TRUE(comes([&] { return std::all_of(silent.begin(), silent.end(), hung_up); }));
}

TEST_F(ServerLimitsTest, WhoAsksIsToldWhatItCounted) {
    const auto none = ask_for_counters(place, seconds(5));
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().text().find("no broker of UDP " + place.text()), std::string::npos) << none.error().text();
    const RunningBroker broker(place);
    const auto one = join();
    const auto two = join();
    for (int times = 0; times < 2; ++times) {
        const auto counted = ask_for_counters(place, seconds(5));
        ASSERT_TRUE(counted.ok()) << counted.error().text();
        EXPECT_EQ(counted.value().of(Counter::Lent), 2U);
        EXPECT_EQ(counted.value().total(), 2U);
    }
}

TEST_F(ServerLimitsTest, CountersAreNotToldToAnotherUser) {
    const RunningBroker broker(place, {}, geteuid() + 1);
    EXPECT_FALSE(ask_for_counters(place, seconds(5)).ok());
}

// A process that has taken the name and answers one connection with `answers` and the end, with a pause after each.
class Pretender {
public:
    Pretender(const Place& place, int answers, std::chrono::milliseconds pause)
        : listener_(listen_at(place)), thread_([this, answers, pause] {
              OwnedFd asks;
              const auto accepts = [&] {
                  asks = OwnedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                  return asks.is_open();
              };
              Packet asked;
              bool goes_on = comes(accepts) && receive_packet(asks.get(), asked, true) == Received::Packet;
              for (int i = 0; goes_on && i < answers; ++i) {
                  goes_on = send_message(asks.get(), Counted{Counter::Lent, 1}, {}, true);
                  std::this_thread::sleep_for(pause);
              }
              static_cast<void>(goes_on && send_message(asks.get(), Look{}, {}, true));
          }) {}
    ~Pretender() { thread_.join(); }

private:
    OwnedFd listener_;
    std::thread thread_;
};

TEST_F(ServerLimitsTest, WhoAsksWaitsForAllAnswersTogether) {
    const Pretender slow(place, 10, std::chrono::milliseconds(100));
    EXPECT_FALSE(ask_for_counters(place, milliseconds(300)).ok());
}

TEST_F(ServerLimitsTest, WhoAsksHearsNoMoreThanThereIs) {
    const Pretender talker(place, static_cast<int>(telemetry::kCounters<Counter>) + 1, {});
    EXPECT_FALSE(ask_for_counters(place, seconds(60)).ok());
}

TEST_F(ServerLimitsTest, WhoAsksBelievesNoOtherUser) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs another user";
    }
    const Pretender stranger(place, 0, {});
    ASSERT_EQ(seteuid(65534), 0);
    const auto counted = ask_for_counters(place, seconds(60));
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_FALSE(counted.ok());
    EXPECT_NE(counted.error().text().find("another user's"), std::string::npos) << counted.error().text();
}

TEST_F(ServerLimitsTest, WhoSaysMoreSocketsThanComeAlongIsEnded) {
    const RunningBroker broker(place);
    const OwnedFd one = connect_to(place, seconds(10));
    ASSERT_TRUE(send_message(one.get(), Rejoin{Slot{1}, 3}, {}, true));  // it owes one more
    ASSERT_TRUE(send_message(one.get(), Sockets{2}, std::array<int, 1>{one.get()}, true));
    EXPECT_TRUE(comes([&] { return broker.count(Counter::Garbage) == 1; }));
}

// The new broker lives just long enough to be noticed.
TEST_F(ServerLimitsTest, ABrokerThatEndsAtOnceIsStartedAFewTimes) {
    const std::string name = testing::TempDir() + "cairn-broker-" + std::to_string(getpid());
    const std::string notes = name + ".notes";
    std::ofstream(name) << "#!/bin/sh\necho started >>" << notes << "\n";
    ASSERT_EQ(chmod(name.c_str(), 0700), 0);
    const auto starts = [&notes] {
        std::ifstream read(notes);
        return std::count(std::istreambuf_iterator<char>(read), {}, '\n');
    };
    const Meeting met = ask_for_slot({place, name, seconds(20)});
    ASSERT_TRUE(std::holds_alternative<NoBroker>(met));
    EXPECT_NE(std::get<NoBroker>(met).why.find("again and again"), std::string::npos);
    EXPECT_EQ(starts(), 3);
    const OwnedFd socket(dup(0));
    const Meeting back = come_back({place, name, seconds(20)}, Slot{1}, std::array<int, 2>{socket.get(), socket.get()});
    EXPECT_TRUE(std::holds_alternative<NoBroker>(back));
    EXPECT_EQ(starts(), 4);
    unlink(name.c_str());
    unlink(notes.c_str());
}

// The descriptors of this process are also the broker's.
TEST_F(ServerLimitsTest, WithoutDescriptorsABrokerWaitsForSome) {
    HubConfig patient;
    patient.silence = seconds(100);
    const RunningBroker broker(place, patient);
    Packet packet;
    const OwnedFd asks = connect_to(place, seconds(10));
    ASSERT_TRUE(send_message(asks.get(), Join{}, {}, true));
    ASSERT_EQ(receive_packet(asks.get(), packet, true), Received::Packet);  // the broker has a descriptor for this one
    packet.fds.clear();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    std::vector<OwnedFd> all;
    for (OwnedFd more(dup(0)); more.is_open(); more = OwnedFd(dup(0))) {
        all.push_back(std::move(more));
        if (all.size() == 1) {
            const rlimit few{static_cast<rlim_t>(all[0].get()) + 20, limit.rlim_max};
            setrlimit(RLIMIT_NOFILE, &few);
        }
    }
    all.pop_back();
    const OwnedFd waits = connect_to(place, seconds(10));  // takes the last descriptor
    ASSERT_TRUE(waits.is_open());
    EXPECT_TRUE(comes([&] { return broker.count(Counter::NoDescriptor) >= 3; }));
    EXPECT_LT(broker.count(Counter::NoDescriptor), 100U);  // it does not retry without end
    all.clear();
    setrlimit(RLIMIT_NOFILE, &limit);
    ASSERT_TRUE(send_message(waits.get(), Join{}, {}, true));
    ASSERT_EQ(receive_packet(waits.get(), packet, true), Received::Packet);
    const auto said = parse_message(packet.bytes);
    EXPECT_TRUE(said && std::holds_alternative<Lent>(*said));
}

TEST_F(ServerLimitsTest, WhatIsSentAlongWithoutNeedIsClosed) {
    const RunningBroker broker(place);
    const OwnedFd one = connect_to(place, seconds(5));
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    ASSERT_TRUE(send_message(one.get(), Leave{}, std::array<int, 2>{pipe[1], pipe[1]}, true));
    ::close(pipe[1]);
    pollfd waiting{pipe[0], POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 10'000), 1);  // the last writer is gone
    EXPECT_NE(waiting.revents & POLLHUP, 0);
    ::close(pipe[0]);
}

}  // namespace
}  // namespace cairn::broker
