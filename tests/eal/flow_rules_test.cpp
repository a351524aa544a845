// The rte_flow rules as built, without a device that takes them.
#include "pmd_glue/flow_rules.hpp"

#include <gtest/gtest.h>
#include <rte_byteorder.h>

namespace cairn::pmd {
namespace {

const rte_flow_item* item_of(const FlowRule& rule, rte_flow_item_type type) {
    const rte_flow_item* item = rule.pattern();
    while (item->type != RTE_FLOW_ITEM_TYPE_END && item->type != type) {
        ++item;
    }
    return item->type == type ? item : nullptr;
}

TEST(FlowRules, RoceIsUdpToPort4791OfBothFamilies) {
    for (const auto& [traffic, ip] :
         {std::pair{Traffic::RoceV4, RTE_FLOW_ITEM_TYPE_IPV4}, std::pair{Traffic::RoceV6, RTE_FLOW_ITEM_TYPE_IPV6}}) {
        const FlowRule rule(traffic, 1);
        EXPECT_EQ(rule.attributes()->ingress, 1U);
        ASSERT_NE(item_of(rule, ip), nullptr);
        const rte_flow_item* udp = item_of(rule, RTE_FLOW_ITEM_TYPE_UDP);
        ASSERT_NE(udp, nullptr);
        EXPECT_EQ(static_cast<const rte_flow_item_udp*>(udp->spec)->hdr.dst_port, rte_cpu_to_be_16(4791));
        EXPECT_EQ(static_cast<const rte_flow_item_udp*>(udp->mask)->hdr.dst_port, 0xffff);
        EXPECT_EQ(static_cast<const rte_flow_item_udp*>(udp->mask)->hdr.src_port, 0);
        EXPECT_EQ(rule.actions()[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
        EXPECT_EQ(rule.actions()[1].type, RTE_FLOW_ACTION_TYPE_END);
    }
}

TEST(FlowRules, SeveralQueuesShareRoceByRss) {
    const FlowRule rule(Traffic::RoceV4, 3);
    ASSERT_EQ(rule.actions()[0].type, RTE_FLOW_ACTION_TYPE_RSS);
    const auto* rss = static_cast<const rte_flow_action_rss*>(rule.actions()[0].conf);
    ASSERT_EQ(rss->queue_num, 3U);
    for (std::uint16_t queue = 0; queue < 3; ++queue) {
        EXPECT_EQ(rss->queue[queue], queue);
    }
}

TEST(FlowRules, NeighbourDiscoveryGoesToTheFirstQueueHoweverManyThereAre) {
    for (const Traffic traffic : {Traffic::Arp, Traffic::IcmpV4, Traffic::IcmpV6}) {
        const FlowRule rule(traffic, 4);
        ASSERT_EQ(rule.actions()[0].type, RTE_FLOW_ACTION_TYPE_QUEUE) << name_of(traffic);
        EXPECT_EQ(static_cast<const rte_flow_action_queue*>(rule.actions()[0].conf)->index, 0);
        EXPECT_EQ(item_of(rule, RTE_FLOW_ITEM_TYPE_UDP), nullptr);
    }
    const FlowRule arp(Traffic::Arp, 1);
    const rte_flow_item* ethernet = item_of(arp, RTE_FLOW_ITEM_TYPE_ETH);
    EXPECT_EQ(static_cast<const rte_flow_item_eth*>(ethernet->spec)->hdr.ether_type, rte_cpu_to_be_16(0x0806));
}

TEST(FlowRules, AnIsolatedPortAsksForNeighbourDiscoveryTooAnOrdinaryOneHasItAnyway) {
    EXPECT_EQ(traffic_to_steer(false), (std::vector{Traffic::RoceV4, Traffic::RoceV6}));
    EXPECT_EQ(traffic_to_steer(true).size(), 5U);
}

}  // namespace
}  // namespace cairn::pmd
