// Two ports joined by rings inside one process, driven step by step: neighbours, calls, payloads sent in place,
// workers without a queue, foreign senders, captures, and not one buffer lost.
#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "lib/net/checksum.hpp"
#include "lib/wire/icrc.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/eal.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/heap_block.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::pmd {
namespace {

constexpr std::uint8_t kEcho = 3;
constexpr std::uint32_t kQpn = 0x100;

// Two DPDK ports, each the other's peer; new ones each time, as a closed port is gone for good.
std::array<std::uint16_t, 2> make_ring_ports() {
    static int made = 0;
    std::array<rte_ring*, 2> rings{};
    std::array<std::uint16_t, 2> ports{};
    const std::string suffix = std::to_string(made++);
    for (std::size_t i = 0; i < rings.size(); ++i) {
        const std::string name = "wire_" + suffix + "_" + std::to_string(i);
        rings[i] = rte_ring_create(name.c_str(), 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
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
          service(port),
          sender(port) {
        erpc::EndpointConfig config;
        config.qp.qpn = Qpn{kQpn + index};
        config.qp.qkey = Qkey{5};
        config.qp.path_mtu_bytes = 4096;
        config.sessions_max = 16;
        config.calls_max = 64;
        config.seed = 77 + index;
        endpoint = erpc::Endpoint::create(config, service, sender, pool).value();
        endpoint->set_handler(kEcho, echo, this);
    }
    static void echo(void* context, const erpc::Request& request) {
        ++static_cast<Worker*>(context)->handled;
        const auto bytes = static_cast<std::uint32_t>(request.payload.size());
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, bytes);
        std::copy(request.payload.begin(), request.payload.end(), answer.begin());
        request.endpoint.respond(request.handle, request.now);
    }
    void turn(Instant now) {
        const std::size_t got = port.receive_burst(burst, now);
        service.on_packets(std::span(burst).first(got), now);
        endpoint->on_timeout(now);
        port.on_timeout(now);
        sender.flush(now);
    }
    HeapBlock memory;
    EthdevPort port;
    rpc::MsgPool pool;
    roce::UdService service;
    roce::Sender sender;
    std::unique_ptr<erpc::Endpoint> endpoint;
    std::array<port::PacketRef, 64> burst{};
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
    void open(std::uint16_t workers) {
        const std::array<std::uint16_t, 2> ports = make_ring_ports();
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
                sides[i].push_back(std::make_unique<Worker>(*devices[i], i == 0 ? "10.5.0.1" : "10.5.0.2", worker));
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
    // All workers end; then no buffer may be missing but those that wait in the wire for ever.
    void TearDown() override {
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
    std::array<std::unique_ptr<Device>, 2> devices;
    std::array<std::vector<std::unique_ptr<Worker>>, 2> sides;
};

TEST_F(NetRing, NeighboursFindEachOtherAndCallsOfAllSizesAreAnswered) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{32}, std::size_t{333}, std::size_t{1024}, std::size_t{4080}}) {
        std::vector<std::uint8_t> request(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            request[i] = static_cast<std::uint8_t>(i * 3 + bytes);
        }
        const Answer answer = call(client, session, request);
        EXPECT_EQ(answer.status, erpc::CallStatus::Ok);
        EXPECT_EQ(answer.content, request) << bytes;
    }
    EXPECT_EQ(sides[1][0]->handled, 6);
    EXPECT_EQ(client.port.counters().of(EthdevCounter::BadIcrc), 0U);
}

TEST_F(NetRing, ALargePayloadInDeviceMemoryIsSentFromWhereItLiesAndArrivesInOnePiece) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    rpc::MsgBuffer request = client.pool.allocate(2048);
    for (std::size_t i = 0; i < request.bytes; ++i) {
        request.data[i] = static_cast<std::uint8_t>(i * 7);
    }
    const bool in_place = client.port.can_send_from(request.span());
    EXPECT_EQ(in_place, devices[0]->plan().segments);
    const Answer answer = call(client, session, request.span());
    EXPECT_TRUE(std::equal(answer.content.begin(), answer.content.end(), request.data, request.data + request.bytes));
    EXPECT_EQ(sides[1][0]->port.counters().of(EthdevCounter::Linearized) != 0, in_place);
    client.pool.release(request);
    const std::vector<std::uint8_t> elsewhere(2048);
    EXPECT_FALSE(client.port.can_send_from(elsewhere));
}

TEST_F(NetRing, WorkersWithoutAQueueAreFedThroughRingsAndSendThroughThem) {
    open(2);
    ASSERT_EQ(devices[0]->plan().queues, 1);
    Worker& client = *sides[0][1];
    const SessionId session = connect(client, kQpn + 1);
    const std::array<std::uint8_t, 4> request{1, 2, 3, 4};
    EXPECT_EQ(call(client, session, request).status, erpc::CallStatus::Ok);
    EXPECT_EQ(sides[1][0]->handled, 0);
    EXPECT_EQ(sides[1][1]->handled, 1);
    EXPECT_GT(sides[1][0]->port.counters().of(EthdevCounter::Forwarded), 0U);
}

TEST_F(NetRing, ADatagramWithAnIpv4IdIsJudgedByItsOwnHeaders) {
    open(1);
    Worker& client = *sides[0][0];
    connect(client, kQpn);
    run(milliseconds(5));  // neighbours know each other
    const net::IpAddress there = net::IpAddress::parse("10.5.0.2").value();
    port::Path* path = client.port.open_path({client.port.local_address(), there, 0xc000, 0}, now);
    const std::uint64_t before = sides[1][0]->service.drops().of(roce::Drop::UnknownQpn);
    for (const bool right : {true, false}) {
        const std::size_t sent = client.port.transmit_frames(1, [&](std::size_t, std::span<std::uint8_t> frame) {
            const std::size_t bytes = path->lower_bytes() + sizeof(roce::RawUd) + 4;
            std::uint8_t* bth = frame.data() + path->lower_bytes();
            std::memset(bth, 0, sizeof(roce::RawUd));
            bth[0] = roce::kUdSendOnly;
            path->write_lower_headers(bth, sizeof(roce::RawUd) + 4);
            std::uint8_t* ip = frame.data() + 14;
            ip[5] = 42;
            ip[10] = ip[11] = 0;
            net::ChecksumSum sum;
            sum.add({ip, 20});
            ip[10] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
            ip[11] = static_cast<std::uint8_t>(sum.checksum());
            const std::uint32_t icrc = wire::icrc_reference(frame.subspan(14, bytes - 18)) ^ (right ? 0U : 1U);
            std::memcpy(frame.data() + bytes - 4, &icrc, sizeof(icrc));
            return bytes;
        });
        EXPECT_EQ(sent, 1U);
        run(milliseconds(1));
    }
    EXPECT_EQ(sides[1][0]->service.drops().of(roce::Drop::UnknownQpn), before + 1);
    EXPECT_EQ(sides[1][0]->port.counters().of(EthdevCounter::BadIcrc), 1U);
}

TEST_F(NetRing, DatagramsToAGroupReachWhoJoinedItByItsOwnEthernetAddress) {
    open(1);
    EthdevPort& from = sides[0][0]->port;
    EthdevPort& to = sides[1][0]->port;
    const net::IpAddress group = net::IpAddress::parse("239.129.1.2").value();
    EXPECT_EQ(group.group_mac().text(), "01:00:5e:01:01:02");
    EXPECT_EQ(net::IpAddress::parse("ff05::12:3456:789a").value().group_mac().text(), "33:33:34:56:78:9a");
    port::Path* const path = from.open_path({from.local_address(), group, 0xc000, 0}, now);
    ASSERT_TRUE(path->resolved());
    const auto send_and_receive = [&] {
        std::array<port::TxPacket, 3> packets{};
        for (port::TxPacket& packet : packets) {
            EXPECT_EQ(from.allocate_burst({&packet.packet, 1}), 1U);
            std::memset(packet.packet.data, 0x5a, 68);
            packet.packet.path = path;
            packet.packet.len = 68;
        }
        EXPECT_EQ(from.transmit_burst(packets, now), packets.size());
        std::array<port::PacketRef, 8> got;
        const std::size_t count = to.receive_burst(got, now);
        for (const port::PacketRef& packet : std::span(got).first(count)) {
            EXPECT_TRUE(packet.icrc_ok);
            EXPECT_EQ(packet.path->key().local, group);
            EXPECT_EQ(packet.path->key().remote, from.local_address());
        }
        to.release_burst(std::span(got).first(count));
        return count;
    };
    EXPECT_EQ(send_and_receive(), 0U);
    EXPECT_FALSE(to.join(net::IpAddress::parse("ff05::1").value()).ok());
    ASSERT_TRUE(to.join(group).ok());
    EXPECT_EQ(send_and_receive(), 3U);
    to.leave(group);
    EXPECT_EQ(to.verdicts().of(port::FrameVerdict::NotForUs), 3U);
}

TEST_F(NetRing, ACaptureHoldsBothDirections) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    const std::string file = testing::TempDir() + "cairn_net_ring.pcap";
    {
        auto capture = Capture::start(*devices[0], file);
        ASSERT_TRUE(capture.ok()) << capture.error().text();
        const std::array<std::uint8_t, 4> request{9, 8, 7, 6};
        call(client, session, request);
    }
    EXPECT_GE(test::read_pcap(file).size(), 2U);
    std::filesystem::remove(file);
}

TEST_F(NetRing, AnEmptyPoolIsAValue) {
    open(1);
    EthdevPort& port = sides[0][0]->port;
    std::vector<port::PacketRef> taken;
    std::array<port::PacketRef, 32> some;
    while (port.allocate_burst(some) == some.size()) {
        taken.insert(taken.end(), some.begin(), some.end());
    }
    EXPECT_GT(port.counters().of(EthdevCounter::NoBuffer), 0U);
    connect(*sides[0][0], kQpn);
    run(milliseconds(5));
    port.release_burst(taken);
    run(milliseconds(50));
    EXPECT_EQ(sides[1][0]->endpoint->sessions_open(), 1U);
}

}  // namespace
}  // namespace cairn::pmd

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::array<std::string, 10> text{argv[0],
                                     "--no-huge",
                                     "-m",
                                     "256",
                                     "--no-pci",
                                     "--no-shconf",
                                     "-l",
                                     "0",
                                     "--no-telemetry",
                                     "--file-prefix=cairn-net-ring-test"};
    std::array<char*, text.size()> arguments{};
    for (std::size_t i = 0; i < text.size(); ++i) {
        arguments[i] = text[i].data();
    }
    const auto eal = cairn::pmd::Eal::start(static_cast<int>(arguments.size()), arguments.data());
    if (!eal.ok()) {
        std::fprintf(stderr, "%s\n", eal.error().text().c_str());
        return 1;
    }
    return RUN_ALL_TESTS();
}
