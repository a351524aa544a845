#include "pmd_glue/flow_rules.hpp"

#include <rte_byteorder.h>
#include <rte_ethdev.h>

#include <numeric>

#include "lib/net/udp.hpp"

namespace cairn::pmd {

std::string_view name_of(Traffic traffic) noexcept {
    constexpr std::array<std::string_view, 5> kNames{"RoCEv2 over IPv4", "RoCEv2 over IPv6", "ARP", "ICMP", "ICMPv6"};
    return kNames[static_cast<std::size_t>(traffic)];
}

std::vector<Traffic> traffic_to_steer(bool isolated) {
    if (!isolated) {
        return {Traffic::RoceV4, Traffic::RoceV6};
    }
    return {Traffic::RoceV4, Traffic::RoceV6, Traffic::Arp, Traffic::IcmpV4, Traffic::IcmpV6};
}

FlowRule::FlowRule(Traffic traffic, std::uint16_t queues) : queues_(queues) {
    attributes_.ingress = 1;
    const bool v4 = traffic == Traffic::RoceV4 || traffic == Traffic::IcmpV4;
    const bool roce = traffic == Traffic::RoceV4 || traffic == Traffic::RoceV6;
    if (traffic == Traffic::Arp) {
        ethernet_.hdr.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
        ethernet_mask_.hdr.ether_type = RTE_BE16(0xffff);
        match(RTE_FLOW_ITEM_TYPE_ETH, &ethernet_, &ethernet_mask_);
    } else {
        match(RTE_FLOW_ITEM_TYPE_ETH);
        if (v4) {
            ipv4_.hdr.next_proto_id = roce ? net::kProtocolUdp : net::kProtocolIcmp;
            ipv4_mask_.hdr.next_proto_id = 0xff;
            match(RTE_FLOW_ITEM_TYPE_IPV4, &ipv4_, &ipv4_mask_);
        } else {
            ipv6_.hdr.proto = roce ? net::kProtocolUdp : net::kProtocolIcmpV6;
            ipv6_mask_.hdr.proto = 0xff;
            match(RTE_FLOW_ITEM_TYPE_IPV6, &ipv6_, &ipv6_mask_);
        }
    }
    if (roce) {
        udp_.hdr.dst_port = rte_cpu_to_be_16(net::kRoceUdpPort);
        udp_mask_.hdr.dst_port = RTE_BE16(0xffff);
        match(RTE_FLOW_ITEM_TYPE_UDP, &udp_, &udp_mask_);
    }
    match(RTE_FLOW_ITEM_TYPE_END);
    std::iota(queues_.begin(), queues_.end(), std::uint16_t{0});
    if (roce && queues > 1) {
        rss_.func = RTE_ETH_HASH_FUNCTION_DEFAULT;
        rss_.types = RTE_ETH_RSS_UDP;
        rss_.queue = queues_.data();
        rss_.queue_num = queues;
        actions_[0] = {RTE_FLOW_ACTION_TYPE_RSS, &rss_};
    } else {
        actions_[0] = {RTE_FLOW_ACTION_TYPE_QUEUE, &queue_};  // index 0
    }
    actions_[1] = {RTE_FLOW_ACTION_TYPE_END, nullptr};
}

void FlowRule::match(rte_flow_item_type type, const void* spec, const void* mask) noexcept {
    pattern_[items_++] = {type, spec, nullptr, mask};
}

}  // namespace cairn::pmd
