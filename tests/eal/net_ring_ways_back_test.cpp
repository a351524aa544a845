// Connection management over two ports joined by rings: a worker answers the datagrams that worker 0 hands to it.
#include <gtest/gtest.h>

#include <cstring>

#include "lib/connections/home.hpp"
#include "lib/wire/cm_message.hpp"
#include "lib/wire/ud.hpp"
#include "tests/eal/net_ring_strangers.hpp"

namespace cairn::pmd {
namespace {

constexpr std::uint32_t kHosts = 0x0a060000;
constexpr net::MacAddress kRouter{{2, 0, 0, 0, 0, 9}};
const wire::ServiceId kService = wire::ip_service(wire::IpProtocol::Udp, 7471);

struct Nobody final : cm::User {
    void on_event(const cm::Event&, Instant) override {}
};

// A host of two workers with connections. The second one answers the questions for a service.
class WaysBack : public NetRingStrangers {
protected:
    void open_homes() {
        open(2);
        for (std::uint32_t i = 0; i < 2; ++i) {
            roce::EngineConfig config = roce::kDatagramsOnly;
            config.owner_bits = 1;
            config.owner = i;
            workers.push_back(worker::Worker::create(sides[1][i]->port, config, now).value());
            homes.push_back(connections::Home::create(agent, *workers.back(), {}).value());
        }
        const cm::DatagramService offer{Qpn{0x1001}, Qkey{77}, {}};
        ASSERT_TRUE(homes[1]->listen_datagrams(kService, offer, user).ok());
    }
    // Writes the datagram of queue pair 1 that asks for the service.
    std::size_t write_question(std::span<std::uint8_t> frame, const port::PathKey& key) const {
        port::Path path(key);
        path.resolve(kRouter, target());
        wire::SidrReq req;
        req.request_id = wire::SidrRequestId{7};
        req.service_id = kService;
        const wire::MadBytes mad = wire::CmMad{1, req}.bytes();
        wire::UdHeader said;
        said.to = said.from = wire::kGeneralServicesQpn;
        said.qkey = wire::kGeneralServicesQkey;
        const wire::RawUd header = said.raw(mad.size());
        std::uint8_t* const bth = frame.data() + path.lower_bytes();
        std::memcpy(bth, &header, sizeof(header));
        std::memcpy(bth + sizeof(header), mad.data(), mad.size());
        constexpr std::uint16_t kBytes = sizeof(header) + sizeof(mad) + port::kIcrcBytes;
        path.seal(bth, kBytes);
        return path.lower_bytes() + kBytes;
    }
    void ask_as_many(std::uint32_t hosts) {
        for (std::uint32_t i = 0; i < hosts; ++i) {
            const auto host = net::IpAddress::from_v4(kHosts + i);
            ASSERT_EQ(sender().port.transmit_frames(1,
                                                    [&](std::size_t, std::span<std::uint8_t> frame) {
                                                        return write_question(frame, {host, there(), 0x1234, 0});
                                                    }),
                      1U);
            for (const auto& worker : workers) {
                worker->turn(now);
            }
            sides[0][0]->turn(now);  // takes the answers off the ring
            now = now + microseconds(20);
        }
    }
    void TearDown() override {
        homes.at(1)->leave(user);
        homes.clear();
        workers.clear();
        NetRingStrangers::TearDown();
    }

    Nobody user;
    std::shared_ptr<connections::Agent> agent = connections::Agent::create();
    std::vector<std::unique_ptr<worker::Worker>> workers;
    std::vector<std::unique_ptr<connections::Home>> homes;
};

TEST_F(WaysBack, StrangersWhoseMessagesAreHandedOverAreAnsweredByTheRouterTheyCameFromAndNotAskedFor) {
    open_homes();
    EthdevPort& second = sides[1][1]->port;
    constexpr std::uint32_t kStrangers = 1'500;  // more than the neighbours that a worker knows
    ask_as_many(kStrangers);
    EXPECT_EQ(second.counters().of(EthdevCounter::Transmitted), kStrangers) << "answers, and no question";
    EXPECT_EQ(second.counters().of(EthdevCounter::Unresolved), 0U);
    EXPECT_EQ(mac_of(*second.open_path({there(), net::IpAddress::from_v4(kHosts), 0x1234, 0}, now)), kRouter);
    EXPECT_EQ(mac_of(*second.open_path({there(), net::IpAddress::from_v4(kHosts), 0xc000, 0}, now)), kRouter);
    // There is room left for a question of its own for a neighbour.
    port::Path* const path = second.open_path({there(), sender().port.local_address(), 0xc000, 0}, now);
    ASSERT_NE(path, nullptr);
    workers[1]->turn(now);
    run(milliseconds(1));
    EXPECT_TRUE(path->resolved());
}

// The worker's own knowledge of the host is worth more than the source of a datagram.
TEST_F(WaysBack, AHostThatTheWorkerKnowsIsAnsweredWhereItIs) {
    open_homes();
    EthdevPort& second = sides[1][1]->port;
    const net::IpAddress host = net::IpAddress::from_v4(kHosts);
    const net::MacAddress own{{2, 0, 0, 0, 0, 5}};
    port::Path* const known = second.open_path({there(), host, 0xc000, 0}, now);
    flood(1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_arp(frame, host, own, there()); });
    run(milliseconds(1));
    ASSERT_TRUE(known->resolved());
    ask_as_many(1);
    EXPECT_EQ(mac_of(*known), own);
    EXPECT_EQ(mac_of(*second.path_back({{there(), host, 0x1234, 0}, kRouter}, now)), own);
}

}  // namespace
}  // namespace cairn::pmd
