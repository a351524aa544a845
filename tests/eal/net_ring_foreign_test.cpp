// RDMA from memory that is not EAL's: a client's memory and a store's file, which other processes map. The memory is
// sent in place.
#include <rte_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "pmd_glue/dma_memory.hpp"
#include "tests/eal/net_ring.hpp"
#include "tests/support/tenants.hpp"

namespace cairn::pmd {
namespace {

using connections::Tenants;

constexpr std::size_t kForeignBytes = std::size_t{64} << 10U;
constexpr std::uint32_t kForeignPart = 8192;
constexpr std::uint16_t kForeignPort = 7471;

// A file of memory that both a client and its shard map.
class Foreign {
public:
    Foreign() : fd_(memfd_create("foreign", MFD_CLOEXEC)) {
        const bool is_sized = ftruncate(fd_, kForeignBytes) == 0;
        void* const memory =
            is_sized ? mmap(nullptr, kForeignBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0) : MAP_FAILED;
        CAIRN_ASSERT(memory != MAP_FAILED);
        bytes = {static_cast<std::uint8_t*>(memory), kForeignBytes};
        std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    }
    ~Foreign() {
        munmap(bytes.data(), bytes.size());
        close(fd_);
    }
    Foreign(const Foreign&) = delete;
    Foreign& operator=(const Foreign&) = delete;

    std::span<std::uint8_t> bytes;

private:
    int fd_;
};

class NetRingForeign : public testing::Test {
protected:
    void SetUp() override {
        const std::array<std::uint16_t, 2> numbers = make_ring_ports(1024);
        for (std::size_t i = 0; i < 2; ++i) {
            DeviceConfig config;
            config.port_id = numbers[i];
            config.wish.path_mtu_bytes = 4096;
            config.buffers = 1024;
            devices[i] = Device::open(config).value();
            const auto address = net::IpAddress::parse(i == 0 ? "10.5.0.1" : "10.5.0.2").value();
            ports[i] = std::make_unique<EthdevPort>(*devices[i], EthdevPortConfig{0, address, 16, 0, {}});
            hosts[i] = std::make_unique<Tenants>(*ports[i], connections::Agent::create(), std::uint8_t{0}, 0U, i);
        }
        connect();
    }
    void TearDown() override {
        for (const auto& host : hosts) {
            host->connector.reset();
            run(milliseconds(5));  // notifies the peer
        }
        for (std::size_t i = 0; i < 2; ++i) {
            hosts[i].reset();
            ports[i].reset();
        }
        for (const auto& device : devices) {
            EXPECT_EQ(device->buffers_in_use(), 0U) << device->describe();
        }
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            hosts[0]->worker->turn(now);
            hosts[1]->worker->turn(now);
        }
    }
    void connect() {
        Tenants& server = *hosts[1];
        ASSERT_TRUE(server.connector->listen(kForeignPort, 4).ok());
        verbs::ConnectTo to;
        to.remote = server.port.local_address();
        to.port = kForeignPort;
        to.path_mtu_bytes = 4096;
        ASSERT_TRUE(hosts[0]->connector->connect(*hosts[0]->qp, to, now).ok());
        run(milliseconds(5));
        while (const auto event = server.connector->poll_event()) {
            if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
                verbs::ConnectionChoice choice;
                choice.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
                ASSERT_TRUE(server.connector->accept(requested->id, *server.qp, choice, now).ok());
            }
        }
        run(milliseconds(5));
    }
    std::unique_ptr<verbs::Mr> know(std::size_t host, std::span<std::uint8_t> memory) {
        const auto rights = verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::RemoteRead;
        auto made = hosts[host]->device->register_memory(*hosts[host]->pd, memory, rights);
        EXPECT_TRUE(made.ok());
        return std::move(made).value();
    }
    // Moves data between the client's memory at `here` and the server's at `there`.
    void move(verbs::WorkOpcode opcode, const verbs::Mr& own, std::span<std::uint8_t> here, const verbs::Mr& peers,
              const std::uint8_t* there) {
        const std::array<verbs::Sge, 1> sges{
            {{reinterpret_cast<std::uintptr_t>(here.data()), static_cast<std::uint32_t>(here.size()), own.lkey()}}};
        verbs::SendRequest request;
        request.opcode = opcode;
        request.sges = sges;
        request.remote_address = reinterpret_cast<std::uintptr_t>(there);
        request.rkey = peers.rkey();
        ASSERT_EQ(hosts[0]->qp->post_send(request), verbs::PostVerdict::Posted);
        run(milliseconds(5));
        std::array<verbs::Completion, 4> done;
        ASSERT_EQ(hosts[0]->completions->poll(done), 1U);
        EXPECT_EQ(done[0].status, verbs::CompletionStatus::Success);
    }
    [[nodiscard]] std::uint64_t copied(std::size_t host) const {
        return ports[host]->counters().of(EthdevCounter::TailCopied);
    }
    // READs the server's `part`.
    void read(const verbs::Mr& peers, std::span<const std::uint8_t> part) {
        const std::span<std::uint8_t> into = std::span(hosts[0]->memory).first(part.size());
        std::fill(into.begin(), into.end(), std::uint8_t{0});
        move(verbs::WorkOpcode::RdmaRead, *hosts[0]->mr, into, peers, part.data());
        EXPECT_TRUE(std::equal(into.begin(), into.end(), part.begin()));
    }

    Instant now = Instant{} + seconds(1);
    Foreign foreign;
    std::array<std::unique_ptr<Device>, 2> devices;
    std::array<std::unique_ptr<EthdevPort>, 2> ports;
    std::array<std::unique_ptr<Tenants>, 2> hosts;
};

TEST_F(NetRingForeign, AReadIsAnsweredFromMappedMemoryWhereItLies) {
    EXPECT_FALSE(ports[1]->can_send_from(foreign.bytes));
    auto known = know(1, foreign.bytes);
    EXPECT_TRUE(ports[1]->can_send_from(foreign.bytes));
    read(*known, foreign.bytes.subspan(4096, kForeignPart));
    read(*known, foreign.bytes.last(kForeignPart));
    EXPECT_EQ(copied(1), 0U);
    known.reset();
    EXPECT_FALSE(ports[1]->can_send_from(foreign.bytes));
}

TEST_F(NetRingForeign, AWriteLeavesFromMappedMemoryWhereItLies) {
    const auto known = know(0, foreign.bytes);
    const std::span<std::uint8_t> part = foreign.bytes.subspan(12'340, kForeignPart);  // at an odd offset
    move(verbs::WorkOpcode::RdmaWrite, *known, part, *hosts[1]->mr, hosts[1]->memory.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), hosts[1]->memory.begin()));
    EXPECT_EQ(copied(0), 0U);
}

// A store and regions within it: the same memory twice, and overlapping parts that are not whole pages. Once the whole
// has ended, a part of it is copied, since the pages around it may be other memory by then.
TEST_F(NetRingForeign, RegionsOfTheSameMemoryAreKnownAsLongAsOneHasAllOfIt) {
    auto all = know(1, foreign.bytes);
    auto again = know(1, foreign.bytes);
    auto part = know(1, foreign.bytes.subspan(100, 3 * kForeignPart));
    auto other = know(1, foreign.bytes.subspan(kForeignPart + 7, 3 * kForeignPart));
    all.reset();
    part.reset();
    read(*again, foreign.bytes.last(kForeignPart));
    read(*other, foreign.bytes.subspan(kForeignPart + 7, kForeignPart));
    EXPECT_EQ(copied(1), 0U);
    again.reset();
    read(*other, foreign.bytes.subspan(kForeignPart + 7, kForeignPart));
    EXPECT_EQ(copied(1), 2U);  // packets
    other.reset();
    all = know(1, foreign.bytes);
    read(*all, foreign.bytes.last(kForeignPart));
    EXPECT_EQ(copied(1), 2U);
}

// As for a NIC, which reads it by DMA.
TEST_F(NetRingForeign, EalKnowsMappedMemoryThatADeviceMaps) {
    DmaMemory mapped(devices[0]->port_id(), true);
    ASSERT_TRUE(mapped.make(foreign.bytes));
    EXPECT_NE(rte_mem_virt2memseg_list(foreign.bytes.data()), nullptr);
    EXPECT_NE(rte_mem_virt2memseg_list(&foreign.bytes.back()), nullptr);
    mapped.end(foreign.bytes);
    EXPECT_EQ(rte_mem_virt2memseg_list(foreign.bytes.data()), nullptr);
}

}  // namespace
}  // namespace cairn::pmd
