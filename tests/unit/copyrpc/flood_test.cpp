// Floods of requests that are never followed up: service for others meanwhile, the cost of the requests, and what is
// left.
#include <array>
#include <functional>

#include "tests/unit/copyrpc/crowd.hpp"
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

// Returns the address of a host by its number.
using Source = std::function<net::IpAddress(std::uint32_t)>;

net::IpAddress made_up(std::uint32_t number) {
    return net::IpAddress::from_v4(0x0b000000 + number);
}
net::IpAddress one_host(std::uint32_t) {
    return net::IpAddress::from_v4(0x0a4d0077);
}

class Flooded : public TwoHosts {
protected:
    explicit Flooded(std::uint16_t sessions_max) : TwoHosts(config(128), config(sessions_max)) {
        RawHello raw;
        Hello{RingShape::kLeastBytes, Hello::kLeastReceives}.emit(raw);
        std::memcpy(greeting.data(), &raw, sizeof(raw));
    }
    static EndpointConfig config(std::uint16_t sessions_max) {
        EndpointConfig config = small_config(400);
        config.sessions_max = config.host_sessions_max = sessions_max;
        return config;
    }
    // Takes a turn of both, before which this many strangers ask.
    void turn(std::uint32_t strangers, const Source& source) {
        for (std::uint32_t i = 0; i < strangers; ++i) {
            crowd.ask(source(crowd.asked()), greeting, now);
        }
        client.turn(now);
        server.turn(now);
        now = now + microseconds(20);
    }
    const rpc::LinkCounters& links() const { return server.endpoint->statistics().links; }
    cm::Manager& connections() { return server.home->manager(); }

    Crowd crowd{server.port};
    std::array<std::uint8_t, 56> greeting{};  // the longest greeting that fits
};

// The server's sessions, and how many of them are in use before the flood. The endpoint chooses the session to drop if
// it has room for fewer strangers than its backlog; else the connection manager does.
struct Occupancy {
    std::uint16_t sessions_max;
    std::uint16_t in_use;
};

class CopyrpcFlood : public Flooded, public testing::WithParamInterface<Occupancy> {
protected:
    CopyrpcFlood() : Flooded(GetParam().sessions_max) {
        for (std::uint16_t i = 0; i < GetParam().in_use; ++i) {
            in_use.push_back(connect());
        }
        EXPECT_EQ(links().opened, GetParam().in_use);
    }
    void turns(int count, std::uint32_t strangers, const Source& source) {
        for (int i = 0; i < count; ++i) {
            turn(strangers, source);
            ASSERT_LE(server.endpoint->sessions_open(), GetParam().sessions_max);
            ASSERT_LE(server.pool.live(), GetParam().sessions_max + links().opened)
                << "a ring each, and a mirror of who came";
            ASSERT_LE(connections().connections(), kStrangersMost + links().opened);
        }
    }
    void expect_call(SessionId session, std::uint32_t strangers, const Source& source) {
        const std::size_t before = count(CallStatus::Ok);
        ASSERT_EQ(post(session, ++tag).verdict, PostVerdict::Posted);
        turns(10, strangers, source);
        EXPECT_EQ(count(CallStatus::Ok), before + 1);
    }
    // Connects, calls and leaves while this many strangers ask in each turn.
    void expect_service(std::uint32_t strangers, const Source& source) {
        client.events.clear();
        const auto session = client.endpoint->connect(server.port.local_address(), kService, now);
        ASSERT_TRUE(session.ok());
        turns(50, strangers, source);
        ASSERT_EQ(client.events, std::vector<SessionEvent>{SessionEvent::Connected}) << "within a millisecond";
        ++guests;
        expect_call(session.value(), strangers, source);
        client.endpoint->disconnect(session.value(), now);
        turns(20, strangers, source);
    }
    void expect_service_beside(std::uint32_t strangers, const Source& source) {
        turns(500, strangers, source);
        for (int i = 0; i < 5; ++i) {
            expect_service(strangers, source);
        }
        for (const SessionId session : in_use) {
            expect_call(session, strangers, source);
        }
        expect_service(0, source);
    }
    void expect_nothing_left() {
        run(seconds(5), milliseconds(1));
        EXPECT_EQ(server.endpoint->sessions_open(), in_use.size());
        EXPECT_EQ(server.pool.live(), 2 * in_use.size());
        run(seconds(15), milliseconds(1));
        EXPECT_EQ(connections().connections(), in_use.size()) << "names and queue pairs may come again";
        expect_service(0, made_up);
    }
    // Checks that each stranger is counted once.
    void expect_account() {
        EXPECT_EQ(links().refused + links().displaced + links().unanswered +
                      connections().counters().of(cm::Counter::BacklogFull),
                  crowd.asked());
        EXPECT_EQ(links().opened, in_use.size() + guests);
        EXPECT_EQ(links().peers_lost, 0U);
    }

    static constexpr std::uint32_t kStrangersMost = 8192;  // of the connection manager, including those that ended
                                                           // lately
    std::vector<SessionId> in_use;
    std::uint64_t guests = 0;
    std::uint64_t tag = 0;
};

TEST_P(CopyrpcFlood, EverNewHostsKeepNobodyOut) {
    expect_service_beside(1, made_up);
    expect_nothing_left();
    expect_account();
}

TEST_P(CopyrpcFlood, AHostThatAsksAllTheTimeKeepsNobodyOut) {
    expect_service_beside(16, one_host);
    expect_nothing_left();
    expect_account();
}

TEST_P(CopyrpcFlood, WhoSaysNonsenseTakesNoPlace) {
    greeting.fill(0xa5);
    expect_service_beside(16, made_up);
    EXPECT_EQ(links().refused, crowd.asked());
    EXPECT_EQ(links().displaced, 0U);
    expect_nothing_left();
    expect_account();
}

INSTANTIATE_TEST_SUITE_P(Occupancies, CopyrpcFlood,
                         testing::Values(Occupancy{24, 0}, Occupancy{100, 0}, Occupancy{100, 96}),
                         [](const testing::TestParamInfo<Occupancy>& of) {
                             return std::to_string(of.param.sessions_max) + "Sessions" +
                                    std::to_string(of.param.in_use) + "InUse";
                         });

class CopyrpcLargeFlood : public Flooded {
protected:
    static constexpr std::uint16_t kSessions = 4096;  // the largest number

    CopyrpcLargeFlood() : Flooded(kSessions) { server.port.hold_paths(4096); }
};

// Each session that waits for its peer holds a path. While strangers hold all their paths, the port takes no packets of
// unknown hosts.
TEST_F(CopyrpcLargeFlood, StrangersLeavePathsToOthers) {
    for (int i = 0; i < kSessions; ++i) {
        turn(1, made_up);
    }
    ASSERT_TRUE(client.endpoint->connect(server.port.local_address(), kService, now).ok());
    for (int i = 0; i < 50; ++i) {
        turn(1, made_up);
    }
    EXPECT_EQ(links().opened, 1U);
    EXPECT_EQ(client.events, std::vector<SessionEvent>{SessionEvent::Connected});
}

}  // namespace
}  // namespace cairn::copyrpc
