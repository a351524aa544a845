// Two hosts of two workers, each with a queue of its own. A flow arrives at the queue that its hash gives, as with RSS.
// A process serves eRPC and RDMA on them at once.
#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <memory>
#include <string>

#include "pmd_glue/ethdev_port.hpp"
#include "tests/support/both.hpp"

namespace cairn::pmd {
namespace {

using connections::Agent;
using connections::Tenants;

constexpr std::uint16_t kQueues = 2;
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kSourcePortAt = kEthernetBytes + 20;  // of UDP over IPv4

struct Rings {
    explicit Rings(const std::string& name) {
        for (std::size_t i = 0; i < of_queue.size(); ++i) {
            of_queue[i] = rte_ring_create((name + std::to_string(i)).c_str(), 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
        }
    }
    std::array<rte_ring*, kQueues> of_queue{};
};

// A device, and its two workers with all that they serve.
struct SteeredHost {
    SteeredHost(const std::string& name, const char* ip, std::uint64_t seed)
        : sent(name + "_sent"), arriving(name + "_arriving"), address(net::IpAddress::parse(ip).value()) {
        DeviceConfig config;
        config.port_id = static_cast<std::uint16_t>(
            rte_eth_from_rings(name.c_str(), arriving.of_queue.data(), kQueues, sent.of_queue.data(), kQueues, 0));
        config.wish.workers = kQueues;
        config.buffers = 1024;
        device = Device::open(config).value();
        EXPECT_EQ(device->plan().queues, kQueues);
        const std::shared_ptr<Agent> agent = Agent::create();
        for (std::uint16_t i = 0; i < kQueues; ++i) {
            ports[i] = std::make_unique<EthdevPort>(*device, EthdevPortConfig{i, address, 16, 1, {}});
            tenants[i] = std::make_unique<Tenants>(*ports[i], agent, 1, i, seed);
        }
    }
    void turn(Instant now) {
        for (const auto& each : tenants) {
            each->worker->turn(now);
        }
    }
    Rings sent;
    Rings arriving;
    net::IpAddress address;
    std::unique_ptr<Device> device;
    std::array<std::unique_ptr<EthdevPort>, kQueues> ports;
    std::array<std::unique_ptr<Tenants>, kQueues> tenants;
};

// Moves frames from all queues of one host to the queues of the other. The hash of a frame's flow and its queue's
// number chooses the queue. A frame without a flow, such as ARP, arrives at queue 0.
void carry(const SteeredHost& from, const SteeredHost& to, std::uint8_t salt) {
    for (rte_ring* const sent : from.sent.of_queue) {
        void* taken = nullptr;
        while (rte_ring_dequeue(sent, &taken) == 0) {
            const auto* const bytes = rte_pktmbuf_mtod(static_cast<rte_mbuf*>(taken), const std::uint8_t*);
            const bool is_flow = bytes[12] == 0x08 && bytes[13] == 0x00;
            const std::size_t queue = is_flow ? (bytes[kSourcePortAt + 1] + salt) % kQueues : 0U;
            ASSERT_EQ(rte_ring_enqueue(to.arriving.of_queue[queue], taken), 0);
        }
    }
}

struct Case {
    std::uint8_t salt;
    std::size_t server;  // the worker that serves on the second host, and the one that asks on the first
};

class NetRingSteering : public testing::TestWithParam<Case> {};

TEST_P(NetRingSteering, OneProcessServesCallsAndConnectionsWhicheverQueueTheyArriveAt) {
    const auto& [salt, server] = GetParam();
    const std::string name = "steered_" + std::to_string(salt) + std::to_string(server);
    Instant now{1'000'000};
    SteeredHost here(name + "a", "10.6.0.1", 1);
    SteeredHost there(name + "b", "10.6.0.2", 2);
    connections::exchange_both(*here.tenants[server], *there.tenants[server], now, [&, salt = salt] {
        here.turn(now);
        there.turn(now);
        carry(here, there, salt);
        carry(there, here, salt);
        now = now + microseconds(20);
    });
    constexpr std::uint64_t kPackets = 64;  // 32 calls and 32 WRITEs
    std::uint64_t strayed = 0;
    for (const auto& port : there.ports) {
        strayed += port->counters().of(EthdevCounter::Forwarded);
        EXPECT_EQ(port->counters().of(EthdevCounter::BadIcrc), 0U);
    }
    const bool arrives_elsewhere = salt != server;
    EXPECT_EQ(strayed >= kPackets, arrives_elsewhere) << strayed;
}

INSTANTIATE_TEST_SUITE_P(EachQueueAndWorker, NetRingSteering,
                         testing::Values(Case{0, 0}, Case{1, 0}, Case{0, 1}, Case{1, 1}));

}  // namespace
}  // namespace cairn::pmd
