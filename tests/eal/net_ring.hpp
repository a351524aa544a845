// Two DPDK ports joined by rings inside one process, and workers of two hosts on them, driven step by step.
#pragma once

#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/heap_block.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::pmd {

constexpr std::uint8_t kEcho = 3;
constexpr std::uint32_t kQpn = 0x100;

// Makes two DPDK ports, each the other's peer. They are new each time, since a closed port cannot be opened again.
inline std::array<std::uint16_t, 2> make_ring_ports(std::uint32_t slots) {
    static int made = 0;
    std::array<rte_ring*, 2> rings{};
    std::array<std::uint16_t, 2> ports{};
    const std::string suffix = std::to_string(made++);
    for (std::size_t i = 0; i < rings.size(); ++i) {
        const std::string name = "wire_" + suffix + "_" + std::to_string(i);
        rings[i] = rte_ring_create(name.c_str(), slots, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
    }
    for (std::size_t i = 0; i < ports.size(); ++i) {
        const std::string name = "port_" + suffix + "_" + std::to_string(i);
        ports[i] = static_cast<std::uint16_t>(rte_eth_from_rings(name.c_str(), &rings[i], 1, &rings[1 - i], 1, 0));
    }
    return ports;
}

// One worker of a host.
struct Worker {
    Worker(Device& device, const char* address, std::uint16_t index)
        : memory(HeapBlock::allocate(std::size_t{4} << 20U, "test").value()),
          port(device, {index, net::IpAddress::parse(address).value(), 16, 0, {}}),
          pool(memory.bytes()),
          worker(worker::Worker::create(port, roce::kDatagramsOnly, {}).value()),
          sender(worker->sender()) {
        erpc::EndpointConfig config;
        config.qp.qpn = Qpn{kQpn + index};
        config.qp.qkey = Qkey{5};
        config.qp.path_mtu_bytes = 4096;
        config.sessions_max = 16;
        config.calls_max = 64;
        config.seed = {77, index};
        endpoint = erpc::Endpoint::create(config, *worker, pool).value();
        endpoint->set_handler(kEcho, echo, this);
    }
    static void echo(void* context, const erpc::Request& request) {
        ++static_cast<Worker*>(context)->handled;
        const auto bytes = static_cast<std::uint32_t>(request.payload.size());
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, bytes);
        std::copy(request.payload.begin(), request.payload.end(), answer.begin());
        request.endpoint.respond(request.handle, request.now);
    }
    void turn(Instant now) { worker->turn(now); }
    HeapBlock memory;
    EthdevPort port;
    rpc::MsgPool pool;
    std::unique_ptr<worker::Worker> worker;
    roce::Sender& sender;
    std::unique_ptr<erpc::Endpoint> endpoint;
    int handled = 0;
};

struct Answer {
    int count = 0;
    erpc::CallStatus status{};
    std::vector<std::uint8_t> content;
    static void take(void* context, const erpc::CallResult& result) {
        auto& self = *static_cast<Answer*>(context);
        ++self.count;
        self.status = result.status;
        self.content.assign(result.response.begin(), result.response.end());
    }
};

class NetRing : public testing::Test {
protected:
    void open(std::uint16_t workers, std::uint32_t slots = 1024) {
        const std::array<std::uint16_t, 2> ports = make_ring_ports(slots);
        for (std::size_t i = 0; i < 2; ++i) {
            DeviceConfig config;
            config.port_id = ports[i];
            config.wish.workers = workers;
            config.wish.path_mtu_bytes = 4096;
            config.buffers = 1024;
            auto device = Device::open(config);
            ASSERT_TRUE(device.ok()) << device.error().text();
            devices[i] = std::move(device).value();
            for (std::uint16_t worker = 0; worker < workers; ++worker) {
                sides[i].push_back(std::make_unique<Worker>(*devices[i], addresses[i], worker));
            }
        }
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            for (auto& side : sides) {
                for (auto& worker : side) {
                    worker->turn(now);
                }
            }
        }
    }
    SessionId connect(Worker& from, std::uint32_t qpn) {
        const net::IpAddress there = net::IpAddress::parse("10.5.0.2").value();
        const roce::UdAddress peer{from.port.open_path({from.port.local_address(), there, 0xc000, 0}, now), Qpn{qpn},
                                   Qkey{5}};
        return from.endpoint->connect(peer, now).value();
    }
    Answer call(Worker& from, SessionId session, std::span<const std::uint8_t> request) {
        Answer answer;
        erpc::Call what;
        what.type = kEcho;
        what.request = request;
        what.completion = Answer::take;
        what.context = &answer;
        EXPECT_EQ(from.endpoint->post(session, what, now).verdict, erpc::PostVerdict::Posted);
        run(milliseconds(20));
        EXPECT_EQ(answer.count, 1);
        return answer;
    }
    // Ends all endpoints, which notifies their peers, then all workers; then no buffer may be missing.
    void TearDown() override {
        run(milliseconds(5));
        for (auto& side : sides) {
            for (auto& worker : side) {
                worker->endpoint.reset();
            }
        }
        run(milliseconds(5));
        for (auto& side : sides) {
            side.clear();
        }
        for (auto& device : devices) {
            if (device != nullptr) {
                EXPECT_EQ(device->buffers_in_use(), 0U) << device->describe();
            }
        }
    }
    Instant now = Instant{} + seconds(1);
    std::array<const char*, 2> addresses{"10.5.0.1", "10.5.0.2"};
    std::array<std::unique_ptr<Device>, 2> devices;
    std::array<std::vector<std::unique_ptr<Worker>>, 2> sides;
};

}  // namespace cairn::pmd
