// The decisions about a device from its driver's properties, without any device: each row of the table of driver
// quirks.
#include "pmd_glue/device_plan.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace cairn::pmd {
namespace {

DeviceFacts nic(const char* driver) {
    DeviceFacts facts;
    facts.driver = driver;
    facts.name = "port";
    facts.max_queues = 8;
    facts.max_mtu_bytes = 9600;
    facts.offers_rss = true;
    facts.offers_ipv4_checksum = true;
    facts.offers_segments = true;
    return facts;
}

DeviceWish wish(std::uint16_t workers, std::uint16_t path_mtu_bytes = 1024) {
    DeviceWish result;
    result.workers = workers;
    result.path_mtu_bytes = path_mtu_bytes;
    return result;
}

TEST(DevicePlan, AnOrdinaryNicGetsAQueuePerWorkerItsOffloadsAndTheMtuThatThePathMtuNeeds) {
    const DevicePlan plan = plan_device(nic("net_ixgbe"), wish(4, 4096)).value();
    EXPECT_EQ(plan.queues, 4);
    EXPECT_TRUE(plan.rss && plan.ipv4_checksum_offload && plan.segments);
    EXPECT_TRUE(plan.set_mtu);
    EXPECT_EQ(plan.link_mtu_bytes, ip_bytes_for(4096));
    EXPECT_GE(plan.data_room_bytes, plan.link_mtu_bytes + 14);
    EXPECT_FALSE(plan.isolate || plan.fence_disconnects);
}

TEST(DevicePlan, TheLargestPathMtuIsWhatTheLinkCarriesAsItIs) {
    EXPECT_EQ(largest_path_mtu(nic("net_ixgbe"), wish(1)), 1024);  // though its MTU could be raised
    DeviceFacts jumbo = nic("net_ixgbe");
    jumbo.mtu_bytes = 9000;
    EXPECT_EQ(largest_path_mtu(jumbo, wish(1)), 4096);
    DeviceFacts memif = nic("net_memif");
    EXPECT_EQ(largest_path_mtu(memif, wish(1, 4096)), 1024);
    memif.devargs = "bsize=4352";
    EXPECT_EQ(largest_path_mtu(memif, wish(1)), 4096);
    DeviceFacts narrow = nic("net_tap");
    narrow.mtu_bytes = 576;
    EXPECT_EQ(largest_path_mtu(narrow, wish(1)), 256);
}

TEST(DevicePlan, WithoutRssOneQueueFeedsAllWorkers) {
    DeviceFacts facts = nic("net_tap");
    facts.offers_rss = false;
    const DevicePlan plan = plan_device(facts, wish(3)).value();
    EXPECT_EQ(plan.queues, 1);
    EXPECT_FALSE(plan.rss);
}

TEST(DevicePlan, FewerQueuesThanWorkersAreAllUsed) {
    DeviceFacts facts = nic("net_ixgbe");
    facts.max_queues = 2;
    EXPECT_EQ(plan_device(facts, wish(3)).value().queues, 2);
}

TEST(DevicePlan, RingsAreQueuesOfWorkersWithoutRss) {
    DeviceFacts facts = nic("net_ring");
    facts.offers_rss = false;
    facts.max_queues = 2;
    for (const auto& [workers, queues] : {std::pair{1, 1}, {2, 2}, {3, 2}}) {
        const DevicePlan plan = plan_device(facts, wish(static_cast<std::uint16_t>(workers))).value();
        EXPECT_EQ(plan.queues, queues);
        EXPECT_FALSE(plan.rss);
    }
}

TEST(DevicePlan, MemifBuffersAreLargerThanItsSlotsWhichLimitFramesAndItsDisconnectsAreFenced) {
    DeviceFacts facts = nic("net_memif");
    EXPECT_EQ(plan_device(facts, wish(2)).value().data_room_bytes, 2048 + 64);
    facts.devargs = "role=server,bsize=4352,rsize=9";
    DeviceWish large = wish(2, 4096);
    const DevicePlan plan = plan_device(facts, large).value();
    EXPECT_EQ(plan.data_room_bytes, 4352 + 64);
    EXPECT_EQ(plan.frame_bytes, 4352);
    EXPECT_EQ(plan.link_mtu_bytes, 4352 - 14);
    large.data_room_bytes = 9000;
    EXPECT_EQ(plan_device(facts, large).value().data_room_bytes, 9000);
    EXPECT_EQ(plan_device(facts, large).value().frame_bytes, 4352) << "what leaves fits a slot";
    EXPECT_EQ(plan_device(facts, large).value().link_mtu_bytes, 4352 - 14);
    large.data_room_bytes = 4352;
    EXPECT_EQ(plan_device(facts, large).error().remedy, "raise --data-room to 4416 or lower bsize");
    EXPECT_EQ(plan.queues, 1);
    EXPECT_TRUE(plan.fence_disconnects);
    EXPECT_FALSE(plan.asks_once);
    facts.devargs = "role=client,bsize=4352";
    EXPECT_TRUE(plan_device(facts, wish(1)).value().asks_once);
    facts.driver = "net_ring";
    EXPECT_FALSE(plan_device(facts, wish(1)).value().asks_once);
}

TEST(DevicePlan, AMemifSlotTooSmallForThePathMtuIsRefusedByName) {
    const auto refused = plan_device(nic("net_memif"), wish(1, 4096));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("bsize=2048"), std::string::npos) << refused.error().text();
    EXPECT_NE(refused.error().remedy.find("bsize="), std::string::npos);
}

TEST(DevicePlan, FramesThatAreLargerThanThoseOfThePathMtuFitBuffersAndLinkOrAreRefusedByName) {
    DeviceWish large = wish(1);
    large.frame_bytes = 9000;
    const DevicePlan ordinary = plan_device(nic("net_ixgbe"), large).value();
    EXPECT_GE(ordinary.data_room_bytes, 9000);
    EXPECT_TRUE(ordinary.set_mtu);
    EXPECT_EQ(ordinary.link_mtu_bytes, 9000 - 14);
    EXPECT_GE(plan_device(nic("net_ring"), large).value().data_room_bytes, 9000);
    DeviceFacts narrow = nic("net_null");
    narrow.max_mtu_bytes = 0;
    for (const DeviceFacts& facts : {nic("net_memif"), narrow, nic("net_af_xdp")}) {
        const auto refused = plan_device(facts, large);
        ASSERT_FALSE(refused.ok()) << facts.driver;
        EXPECT_NE(refused.error().what.find("frames of 9000 bytes"), std::string::npos) << refused.error().text();
        EXPECT_NE(refused.error().remedy.find("lower --frame-bytes"), std::string::npos) << refused.error().text();
    }
    large.frame_bytes = 1114;  // as for the path MTU
    EXPECT_TRUE(plan_device(narrow, large).ok());
}

TEST(DevicePlan, AfPacketNeedsBuffersOfAWholeFrameBecauseItCopiesUnchecked) {
    DeviceFacts facts = nic("net_af_packet");
    facts.max_queues = 1;
    facts.devargs = "iface=veth0,framesz=4096";
    EXPECT_GE(plan_device(facts, wish(1)).value().data_room_bytes, 2048);
    DeviceWish small = wish(1);
    small.data_room_bytes = 2048;
    const auto refused = plan_device(facts, small);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("framesz=4096"), std::string::npos);
}

TEST(DevicePlan, AfPacketSpreadsOverAllItsQueuesSoEachNeedsAWorker) {
    DeviceFacts facts = nic("net_af_packet");
    facts.max_queues = 2;
    EXPECT_EQ(plan_device(facts, wish(2)).value().queues, 2);
    EXPECT_FALSE(plan_device(facts, wish(1)).ok());
}

TEST(DevicePlan, AfXdpIsLimitedToAPageAndBeginsItsBuffersWithItsOwnHeadroom) {
    DeviceWish large = wish(1, 2048);
    const DevicePlan plan = plan_device(nic("net_af_xdp"), large).value();
    EXPECT_EQ(plan.data_room_bytes, 2432);
    EXPECT_EQ(plan.frame_bytes, 2432 - 256);
    EXPECT_EQ(plan_device(nic("net_af_xdp"), wish(1)).value().data_room_bytes, 2048);
    large.data_room_bytes = 2304;
    EXPECT_NE(plan_device(nic("net_af_xdp"), large).error().remedy.find("--data-room to 2432"), std::string::npos);
    EXPECT_EQ(plan_device(nic("net_ixgbe"), large).value().frame_bytes, 2304) << "other buffers have no such headroom";
    const auto refused = plan_device(nic("net_af_xdp"), wish(1, 4096));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().remedy.find("2048"), std::string::npos);
}

TEST(DevicePlan, AKernelInterfaceWhoseMtuIsTooSmallIsNamedWithTheCommandThatHelps) {
    DeviceFacts facts = nic("net_af_packet");
    facts.max_queues = 1;
    facts.devargs = "framesz=8192";
    facts.kernel_interface = true;
    const auto refused = plan_device(facts, wish(1, 4096));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("MTU 1500"), std::string::npos);
    EXPECT_NE(refused.error().remedy.find("ip link set"), std::string::npos);
    facts.mtu_bytes = 9000;
    EXPECT_FALSE(plan_device(facts, wish(1, 4096)).value().set_mtu);
}

TEST(DevicePlan, Mlx5WithRoceEnabledIsRefusedWithTheRemedyAndElseSharesTheNicWithTheKernel) {
    DeviceFacts facts = nic("mlx5_pci");
    facts.name = "0000:3b:00.0";
    EXPECT_TRUE(plan_device(facts, wish(1)).value().isolate);
    facts.roce_in_hardware = true;
    const auto refused = plan_device(facts, wish(1));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().remedy.find("devlink dev param set pci/0000:3b:00.0 name enable_roce"),
              std::string::npos);
}

TEST(DevargNumber, FindsWholeKeysAndIgnoresWhatIsNoNumber) {
    EXPECT_EQ(devarg_number("role=server,bsize=384", "bsize", 7), 384U);
    EXPECT_EQ(devarg_number("xbsize=1,bsize=2", "bsize", 7), 2U);
    EXPECT_EQ(devarg_number("bsize=12k", "bsize", 7), 7U);
    EXPECT_EQ(devarg_number("bsize", "bsize", 7), 7U);
    EXPECT_EQ(devarg_number("", "bsize", 7), 7U);
}

TEST(DevicePlan, WorkersThatPollAQueueOfEachDeviceAreAsManyAsTheFewestQueues) {
    std::array<DeviceFacts, 2> devices{nic("net_ixgbe"), nic("net_memif")};
    EXPECT_EQ(workers_in_common(devices, wish(4)).value(), 1);
    EXPECT_EQ(workers_in_common(std::span(devices).first(1), wish(4)).value(), 4);
    EXPECT_EQ(plan_device(devices[0], wish(workers_in_common(devices, wish(4)).value())).value().queues, 1)
        << "a queue that nobody polls gets nothing";
    devices[1] = nic("net_af_packet");  // spreads over all its queues
    devices[1].max_queues = 8;
    EXPECT_FALSE(workers_in_common(devices, wish(4)).ok());
}

TEST(DevicePlan, PayloadsAreSentFromTheMemoryThatTheDriverReads) {
    const auto memory = [](const char* driver, bool in_software, const char* devargs) {
        DeviceFacts facts = nic(driver);
        facts.max_queues = 1;
        facts.in_software = in_software;
        facts.devargs = devargs;
        EXPECT_EQ(plan_device(facts, wish(1)).value().memory, memory_of(facts));
        return memory_of(facts);
    };
    EXPECT_EQ(memory("net_memif", true, "role=client"), SentMemory::Any);
    EXPECT_EQ(memory("net_memif", true, "role=client,zero-copy=no"), SentMemory::Any);
    EXPECT_EQ(memory("net_memif", true, "role=client,zero-copy=yes"), SentMemory::Eal);
    EXPECT_EQ(memory("net_af_packet", true, "iface=eth0"), SentMemory::Any);
    EXPECT_EQ(memory("net_ring", true, ""), SentMemory::Attached);
    EXPECT_EQ(memory("net_ixgbe", false, ""), SentMemory::Mapped);
    EXPECT_EQ(memory("mlx5_pci", false, "zero-copy=yes"), SentMemory::Mapped);
    EXPECT_EQ(memory("net_virtio_user", true, ""), SentMemory::Eal);
}

TEST(DevicePlan, AMemifThatSharesItsMemoryGetsFewFramesAtOnce) {
    DeviceFacts facts = nic("net_memif");
    facts.devargs = "role=client,zero-copy=yes";
    EXPECT_EQ(plan_device(facts, wish(1)).value().frames_at_once, 4);
    facts.devargs = "role=client,zero-copy=no";
    EXPECT_GT(plan_device(facts, wish(1)).value().frames_at_once, 64);
    EXPECT_GT(plan_device(nic("net_ixgbe"), wish(1)).value().frames_at_once, 64);
}

TEST(DevicePlan, ReceiveRingsTakeBuffersOfAPoolWhereTheDriverFillsThem) {
    EXPECT_TRUE(plan_device(nic("net_ixgbe"), wish(1)).value().fills_rings);
    for (const char* driver : {"net_memif", "net_null"}) {
        DeviceFacts facts = nic(driver);
        facts.in_software = true;
        EXPECT_FALSE(plan_device(facts, wish(1)).value().fills_rings) << driver;
    }
    EXPECT_GT(least_buffers(16, 1024), 16'384U);
    EXPECT_LT(least_buffers(12, 1024), 16'384U);
}

}  // namespace
}  // namespace cairn::pmd
