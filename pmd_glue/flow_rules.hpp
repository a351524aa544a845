// The rte_flow rules that bring to our queues RoCEv2, and the packets by which neighbours find us. Building a rule is
// pure; Device offers it to the driver.
#pragma once

#include <rte_flow.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace cairn::pmd {

enum class Traffic : std::uint8_t { RoceV4, RoceV6, Arp, IcmpV4, IcmpV6 };

[[nodiscard]] std::string_view name_of(Traffic traffic) noexcept;

// Returns the traffic that needs a rule: RoCE always; in isolated mode everything, since nothing else arrives.
[[nodiscard]] std::vector<Traffic> traffic_to_steer(bool isolated);

// One rule, with the memory that its pattern and actions point to.
class FlowRule {
public:
    // Makes the rule. RoCE goes to the queues 0 ... queues - 1, spread by RSS. All else goes to queue 0.
    FlowRule(Traffic traffic, std::uint16_t queues);
    FlowRule(const FlowRule&) = delete;
    FlowRule& operator=(const FlowRule&) = delete;

    [[nodiscard]] const rte_flow_attr* attributes() const noexcept { return &attributes_; }
    [[nodiscard]] const rte_flow_item* pattern() const noexcept { return pattern_.data(); }
    [[nodiscard]] const rte_flow_action* actions() const noexcept { return actions_.data(); }

private:
    void match(rte_flow_item_type type, const void* spec = nullptr, const void* mask = nullptr) noexcept;

    rte_flow_attr attributes_{};
    std::array<rte_flow_item, 5> pattern_{};
    std::array<rte_flow_action, 2> actions_{};
    std::size_t items_ = 0;
    rte_flow_item_eth ethernet_{};
    rte_flow_item_eth ethernet_mask_{};
    rte_flow_item_ipv4 ipv4_{};
    rte_flow_item_ipv4 ipv4_mask_{};
    rte_flow_item_ipv6 ipv6_{};
    rte_flow_item_ipv6 ipv6_mask_{};
    rte_flow_item_udp udp_{};
    rte_flow_item_udp udp_mask_{};
    rte_flow_action_queue queue_{};
    rte_flow_action_rss rss_{};
    std::vector<std::uint16_t> queues_;
};

}  // namespace cairn::pmd
