// The place of packet buffers and messages in memory, and memory that is attached to a port.
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <vector>

#include "lib/mem/region.hpp"
#include "pmd_glue/exchange.hpp"
#include "pmd_glue/packet_pool.hpp"
#include "tests/eal/net_ring.hpp"

namespace cairn::pmd {
namespace {

using Range = std::span<const std::uint8_t>;

// Returns whether the mapping of this address asks for transparent huge pages.
bool is_advised(const void* where) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(where);
    std::ifstream file("/proc/self/smaps");
    bool within = false;
    for (std::string line; std::getline(file, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        char dash = 0;
        std::istringstream words(line);
        if (words >> std::hex >> begin >> dash >> end && dash == '-') {
            within = begin <= wanted && wanted < end;
        } else if (within && line.starts_with("VmFlags:")) {
            return line.find(" hg") != std::string::npos;
        }
    }
    return false;
}

bool huge_pages_are_offered() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string text;
    std::getline(file, text);
    return mem::offers_transparent_pages(text);
}

PacketPool::Shape shape(bool cpu_alone, std::uint32_t buffers = 2048) {
    return {"a_pool", buffers, 2048, 0, cpu_alone};
}

// Takes all buffers of a pool.
std::vector<rte_mbuf*> take_all(const PacketPool& pool) {
    std::vector<rte_mbuf*> all;
    while (rte_mbuf* const one = rte_pktmbuf_alloc(pool.get())) {
        all.push_back(one);
    }
    return all;
}

TEST(PacketPoolTest, BuffersThatOnlyTheCpuReadsLieInPagesOfTheirOwn) {
    Range gone;
    {
        const PacketPool pool = PacketPool::make(shape(true)).value();
        ASSERT_NE(pool.pages(), nullptr);
        const Range pages = pool.pages()->bytes();
        gone = pages;
        const std::vector<rte_mbuf*> all = take_all(pool);
        EXPECT_EQ(all.size(), 2048U);
        for (rte_mbuf* const each : all) {
            const auto* const begin = static_cast<const std::uint8_t*>(each->buf_addr);
            ASSERT_TRUE(pages.data() <= begin && begin + each->buf_len <= pages.data() + pages.size());
            ASSERT_EQ(each->buf_len, 2048 + RTE_PKTMBUF_HEADROOM);
            ASSERT_EQ(each->data_off, RTE_PKTMBUF_HEADROOM);
            std::fill_n(static_cast<std::uint8_t*>(each->buf_addr), each->buf_len, std::uint8_t{0xa5});
        }
        EXPECT_EQ(rte_mem_virt2memseg_list(pages.data()), nullptr);
        EXPECT_EQ(is_advised(pages.data()), huge_pages_are_offered());
        for (rte_mbuf* const each : all) {
            rte_pktmbuf_free(each);
        }
    }
    EXPECT_FALSE(is_advised(gone.data()));
}

TEST(PacketPoolTest, BuffersOfOtherDevicesLieInEalsMemory) {
    const PacketPool pool = PacketPool::make(shape(false)).value();
    EXPECT_EQ(pool.pages(), nullptr);
    rte_mbuf* const one = rte_pktmbuf_alloc(pool.get());
    ASSERT_NE(one, nullptr);
    EXPECT_NE(rte_mem_virt2memseg_list(one), nullptr);
    EXPECT_EQ(one->buf_len, 2048 + RTE_PKTMBUF_HEADROOM);
    rte_pktmbuf_free(one);
}

TEST(PacketPoolTest, MoreThanThereIsIsRefusedInWordsThatHelp) {
    for (const bool cpu_alone : {true, false}) {
        const auto refused = PacketPool::make(shape(cpu_alone, ~0U));
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().what.find("4294967295 buffers"), std::string::npos) << refused.error().text();
        EXPECT_NE(refused.error().remedy.find("--buffers"), std::string::npos) << refused.error().text();
    }
    EXPECT_TRUE(PacketPool::make(shape(true)).ok());  // the first pool left nothing behind
}

TEST(PacketPoolTest, TheOperatorHearsOfSmallPagesWhereLargeOnesWouldFit) {
    constexpr std::size_t kLarge = std::size_t{2} << 20U;
    EXPECT_NE(PacketPool::remark_on(mem::PageKind::Plain, kLarge).find("transparent_hugepage"), std::string::npos);
    EXPECT_EQ(PacketPool::remark_on(mem::PageKind::Plain, kLarge - 1), "");
    EXPECT_EQ(PacketPool::remark_on(mem::PageKind::Transparent, kLarge), "");
    EXPECT_EQ(PacketPool::make(shape(false)).value().remark(), "");
}

TEST(ExchangeTest, FortyWorkersHaveARingForEachOrderedPairAndLane) {
    constexpr std::uint16_t kWorkers = 40;  // EAL cannot name that many pieces of memory
    Result<Exchange> made = Exchange::make(kWorkers);
    ASSERT_TRUE(made.ok()) << made.error().text();
    Exchange exchange = std::move(made).value();
    std::array<rte_mbuf, kWorkers> frames{};
    for (const Exchange::Lane lane : {Exchange::Lane::Received, Exchange::Lane::ToSend}) {
        for (std::uint16_t to = 0; to < kWorkers; ++to) {
            for (std::uint16_t from = 0; from < kWorkers; ++from) {
                EXPECT_TRUE(from == to || exchange.pass(lane, from, to, &frames[from]));
            }
        }
        for (std::uint16_t to = 0; to < kWorkers; ++to) {
            std::array<rte_mbuf*, kWorkers> got{};
            ASSERT_EQ(exchange.collect(lane, to, got), kWorkers - 1U);
            for (std::uint16_t from = 0, at = 0; from < kWorkers; ++from) {
                EXPECT_TRUE(from == to || got[at++] == &frames[from]) << from << " to " << to;
            }
        }
    }
}

TEST(HeapBlockTest, LiesInPagesOfItsOwnWhereNoDeviceHasToKnowIt) {
    ASSERT_EQ(rte_eth_dev_count_avail(), 0);
    std::span<std::uint8_t> gone;
    {
        const HeapBlock block = HeapBlock::allocate(std::size_t{4} << 20U, "a test").value();
        gone = block.bytes();
        EXPECT_EQ(gone.size(), std::size_t{4} << 20U);
        EXPECT_TRUE(block.is_given_back());
        EXPECT_EQ(rte_mem_virt2memseg_list(gone.data()), nullptr);
        EXPECT_EQ(is_advised(gone.data()), huge_pages_are_offered());
        EXPECT_TRUE(std::all_of(gone.begin(), gone.end(), [](std::uint8_t byte) { return byte == 0; }));
    }
    EXPECT_FALSE(is_advised(gone.data()));
}

TEST(HeapBlockTest, MoreThanThereCanBeIsRefusedInWordsThatHelp) {
    const auto refused = HeapBlock::allocate(std::size_t{1} << 60U, "a test");
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("a test"), std::string::npos) << refused.error().text();
    EXPECT_NE(refused.error().remedy.find("ask for less"), std::string::npos) << refused.error().text();
}

// A ring between two ports: the receiver reads the memory later.
class NetRingMemory : public NetRing {
protected:
    void SetUp() override {
        open(1);
        here = sides[0][0].get();
    }
    // Sends to the peer, whose port does not know the memory.
    void send_from(Range payload) {
        if (path == nullptr) {
            const net::IpAddress there = net::IpAddress::parse("10.5.0.2").value();
            path = here->port.open_path({here->port.local_address(), there, 0xc000, 0}, now);
            path->resolve(devices[0]->mac(), devices[1]->mac());
        }
        const port::PacketRef buffer = here->sender.take();
        std::fill_n(buffer.data, 36, std::uint8_t{1});
        here->sender.send(buffer, path, 36 + port::kIcrcBytes, payload, now);
        here->sender.flush(now);
    }
    [[nodiscard]] std::uint64_t copied() const { return here->port.counters().of(EthdevCounter::TailCopied); }

    Worker* here = nullptr;
    port::Path* path = nullptr;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(16384, 0x5a);
};

TEST_F(NetRingMemory, BuffersLieInPagesOfTheirOwnAndMessagesWhereTheDeviceKnowsThem) {
    rte_mbuf* const one = rte_pktmbuf_alloc(devices[0]->pool());
    EXPECT_EQ(rte_mem_virt2memseg_list(one), nullptr);
    EXPECT_EQ(is_advised(one), huge_pages_are_offered());
    rte_pktmbuf_free(one);
    EXPECT_NE(rte_mem_virt2memseg_list(here->memory.bytes().data()), nullptr);
    EXPECT_FALSE(here->memory.is_given_back());
}

TEST_F(NetRingMemory, APayloadIsSentInPlaceFromMemoryThatIsAttached) {
    const Range part = Range(memory).subspan(100, 2048);
    ASSERT_FALSE(here->port.can_send_from(part));
    send_from(part);
    EXPECT_EQ(copied(), 1U);
    ASSERT_TRUE(here->port.attach(memory));
    EXPECT_TRUE(here->port.can_send_from(part));
    EXPECT_EQ(rte_mem_virt2memseg_list(memory.data()), nullptr);  // no device maps it
    send_from(part);
    EXPECT_EQ(copied(), 1U);
    run(milliseconds(1));
    here->port.detach(memory);
    EXPECT_FALSE(here->port.can_send_from(part));
    send_from(part);
    EXPECT_EQ(copied(), 2U);
}

TEST_F(NetRingMemory, EalsMemoryNeedsNoAttaching) {
    const Range known = here->memory.bytes();
    EXPECT_TRUE(here->port.can_send_from(known));
    EXPECT_TRUE(here->port.attach(known));
    here->port.detach(known);
    EXPECT_TRUE(here->port.can_send_from(known));
}

// The ring still refers to the memory: the same addresses are not taken for known, since other memory may be there.
TEST_F(NetRingMemory, MemoryThatTheDeviceKeepsIsNotAttachedAgainUntilItIsBack) {
    const Range part = Range(memory).subspan(4096, 4096);
    ASSERT_TRUE(here->port.attach(part));
    send_from(part.first(2048));
    here->sender.settle_tails(part);
    ASSERT_EQ(here->port.counters().of(EthdevCounter::TailsKept), 1U);
    here->port.detach(part);
    EXPECT_FALSE(here->port.can_send_from(part));
    EXPECT_FALSE(here->port.attach(part));
    run(milliseconds(1));  // the peer takes it
    EXPECT_TRUE(here->port.attach(part));
    here->port.detach(part);
}

class DmaMemoryTest : public NetRingMemory {
protected:
    void SetUp() override {
        NetRingMemory::SetUp();
        auto mapped = mem::Region::map(std::size_t{64} << 10U, mem::PageWish::NoHuge);
        region.emplace(std::move(mapped).value());
        piece = region->bytes();
    }
    [[nodiscard]] static bool eal_knows(Range range) {
        const rte_memseg_list* const found = rte_mem_virt2memseg_list(range.data());
        return found != nullptr && rte_mem_virt2iova(range.data()) == reinterpret_cast<std::uintptr_t>(range.data());
    }

    std::optional<mem::Region> region;
    Range piece;
};

TEST_F(DmaMemoryTest, EalKnowsAPieceAsLongAsAnyDeviceReadsIt) {
    DmaMemory one(devices[0]->port_id(), true);
    {
        DmaMemory other(devices[1]->port_id(), true);
        EXPECT_FALSE(eal_knows(piece));
        ASSERT_TRUE(one.make(piece));
        EXPECT_TRUE(eal_knows(piece));
        EXPECT_FALSE(here->port.can_send_from(piece)) << "what is mapped for one device is no other's to send from";
        ASSERT_TRUE(other.make(piece));
        one.end(piece);
        EXPECT_TRUE(eal_knows(piece));
    }
    EXPECT_FALSE(eal_knows(piece));
    ASSERT_TRUE(one.make(piece));
    ASSERT_TRUE(one.make(piece));  // by another port of the device
    one.end(piece);
    EXPECT_TRUE(eal_knows(piece));
    one.end(piece);
    EXPECT_FALSE(eal_knows(piece));
}

TEST_F(DmaMemoryTest, NothingIsMadeKnownWhereNobodyMapsOrADeviceSharesAllThatEalKnows) {
    DmaMemory by_cpu(devices[0]->port_id(), false);
    EXPECT_TRUE(by_cpu.make(piece));
    EXPECT_FALSE(eal_knows(piece));
    by_cpu.end(piece);
    DmaMemory mapped(devices[0]->port_id(), true);
    ASSERT_EQ(rte_eal_hotplug_add("vdev", "net_null7", ""), 0);
    EXPECT_FALSE(mapped.make(piece));
    EXPECT_FALSE(eal_knows(piece));
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", "net_null7"), 0);
    EXPECT_TRUE(mapped.make(piece));
    mapped.end(piece);
    DmaMemory of_nothing(RTE_MAX_ETHPORTS - 1, true);
    EXPECT_FALSE(of_nothing.make(piece));
    EXPECT_FALSE(eal_knows(piece));
}

}  // namespace
}  // namespace cairn::pmd
