#include "pmd_glue/device.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "pmd_glue/control_thread.hpp"
#include "pmd_glue/exchange.hpp"
#include "pmd_glue/flow_rules.hpp"
#include "pmd_glue/link_wait.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint64_t kHashFields = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;

Error device_error(const DeviceFacts& facts, const char* step, int code) {
    return Error{fmt::format("{}: {} refused: {}", facts.name, step, rte_strerror(-code)),
                 "check the device arguments; --log-level=debug says more"};
}

// Asks the kernel for an interface's MTU, which it knows better than a driver that never asked. A look at /sys would
// not do: it may show the interfaces of another network namespace.
void ask_kernel(unsigned interface_index, DeviceFacts& facts) {
    ifreq request{};
    if (interface_index == 0 || if_indextoname(interface_index, static_cast<char*>(request.ifr_name)) == nullptr) {
        return;
    }
    const int any_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any_socket >= 0 && ioctl(any_socket, SIOCGIFMTU, &request) == 0) {
        facts.mtu_bytes = static_cast<std::uint16_t>(std::min(request.ifr_mtu, 0xffff));
        facts.kernel_interface = true;
    }
    if (any_socket >= 0) {
        close(any_socket);
    }
}

// Returns whether the PCI function has an RDMA device whose GID table has RoCE v2: then the NIC's own engine is on.
bool roce_is_on(const std::string& pci_name) {
    namespace fs = std::filesystem;
    std::error_code none;
    const fs::path devices = fs::path("/sys/bus/pci/devices") / pci_name / "infiniband";
    for (const auto& device : fs::directory_iterator(devices, none)) {
        const fs::path types = device.path() / "ports/1/gid_attrs/types";
        for (const auto& type : fs::directory_iterator(types, none)) {
            std::ifstream file(type.path());
            std::string text;
            if (std::getline(file, text) && text.find("RoCE v2") != std::string::npos) {
                return true;
            }
        }
    }
    return false;
}

void close_port(std::uint16_t port_id) {
    rte_eth_dev_stop(port_id);
    rte_eth_dev_close(port_id);
}

}  // namespace

Result<DeviceFacts> Device::facts_of(std::uint16_t port_id) {
    if (rte_eth_dev_is_valid_port(port_id) == 0) {
        return Error{fmt::format("port eth:{} does not exist ({} ports)", port_id, rte_eth_dev_count_avail()),
                     "add a --vdev or -a argument before \"--\", or choose another --port"};
    }
    DeviceFacts facts;
    std::array<char, RTE_ETH_NAME_MAX_LEN> name{};
    rte_eth_dev_get_name_by_port(port_id, name.data());
    facts.name = name.data();
    rte_eth_dev_info info{};
    const int code = rte_eth_dev_info_get(port_id, &info);
    if (code != 0) {
        return device_error(facts, "reading its limits", code);
    }
    facts.driver = info.driver_name;
    const rte_devargs* devargs = info.device != nullptr ? rte_dev_devargs(info.device) : nullptr;
    facts.devargs = devargs != nullptr && devargs->args != nullptr ? devargs->args : "";
    const rte_bus* const bus = info.device != nullptr ? rte_dev_bus(info.device) : nullptr;
    facts.in_software = bus == nullptr || std::string_view(rte_bus_name(bus)) == "vdev";
    facts.max_queues = std::min(info.max_rx_queues, info.max_tx_queues);
    rte_eth_dev_get_mtu(port_id, &facts.mtu_bytes);
    facts.max_mtu_bytes = info.max_mtu == UINT16_MAX ? std::uint16_t{0} : info.max_mtu;
    ask_kernel(info.if_index, facts);
    facts.offers_rss = (info.flow_type_rss_offloads & kHashFields) != 0;
    facts.offers_ipv4_checksum = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
    facts.offers_segments = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
    facts.roce_in_hardware = facts.driver == "mlx5_pci" && roce_is_on(facts.name);
    return facts;
}

bool reaches_network(std::uint16_t port_id) {
    constexpr std::array<std::string_view, 3> kWithin{"net_memif", "net_ring", "net_null"};
    const Result<DeviceFacts> facts = Device::facts_of(port_id);
    return !facts.ok() || std::find(kWithin.begin(), kWithin.end(), facts.value().driver) == kWithin.end();
}

Result<std::unique_ptr<Device>> Device::open(const DeviceConfig& config) {
    std::unique_ptr<Device> device(new Device(config));
    const Status configured = device->configure();
    if (!configured.ok()) {
        return configured.error();
    }
    return device;
}

Device::Device(const DeviceConfig& config) : config_(config) {}

Status Device::configure() {
    Result<DeviceFacts> facts = facts_of(config_.port_id);
    if (!facts.ok()) {
        return facts.error();
    }
    facts_ = std::move(facts).value();
    if (config_.wish.path_mtu_bytes == 0) {
        config_.wish.path_mtu_bytes = largest_path_mtu(facts_, config_.wish);
    }
    Result<DevicePlan> plan = plan_device(facts_, config_.wish);
    if (!plan.ok()) {
        return plan.error();
    }
    plan_ = plan.value();
    dma_memory_ = std::make_unique<DmaMemory>(port_id(), plan_.memory == SentMemory::Mapped);
    const Status pool = make_pool();
    if (!pool.ok()) {
        return pool.error();
    }
    if (workers() > 1) {
        Result<Exchange> made = Exchange::make(workers());
        if (!made.ok()) {
            return made.error();
        }
        exchange_ = std::make_unique<Exchange>(std::move(made).value());
    }
    rte_flow_error refusal{};
    isolated_ = plan_.isolate && rte_flow_isolate(port_id(), 1, &refusal) == 0;
    const Status queues = set_up_queues();
    if (!queues.ok()) {
        return queues.error();
    }
    rte_ether_addr address{};
    rte_eth_macaddr_get(port_id(), &address);
    if (rte_is_zero_ether_addr(&address) != 0) {  // net_ring and net_null have none; peers answer only stations with an
                                                  // address
        rte_eth_random_addr(address.addr_bytes);
    }
    std::memcpy(mac_.octets.data(), address.addr_bytes, mac_.octets.size());
    steer();
    return Nothing{};
}

Status Device::make_pool() {
    const bool cpu_alone = plan_.memory == SentMemory::Any || plan_.memory == SentMemory::Attached;
    Result<PacketPool> made = PacketPool::make({fmt::format("cairn_{}", port_id()), config_.buffers,
                                                plan_.data_room_bytes, rte_eth_dev_socket_id(port_id()), cpu_alone});
    if (!made.ok()) {
        return made.error();
    }
    pool_.emplace(std::move(made).value());
    return Nothing{};
}

Status Device::set_up_queues() {
    rte_eth_conf conf{};
    if (plan_.rss) {
        rte_eth_dev_info info{};
        rte_eth_dev_info_get(port_id(), &info);
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = kHashFields & info.flow_type_rss_offloads;
    }
    conf.txmode.offloads = (plan_.ipv4_checksum_offload ? RTE_ETH_TX_OFFLOAD_IPV4_CKSUM : 0U) |
                           (plan_.segments ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0U);
    if (plan_.set_mtu) {
        conf.rxmode.mtu = plan_.link_mtu_bytes;
    }
    int code = rte_eth_dev_configure(port_id(), plan_.queues, plan_.queues, &conf);
    if (code != 0) {
        return device_error(facts_, "configuring its queues", code);
    }
    std::uint16_t receive_slots = config_.ring_slots;
    std::uint16_t transmit_slots = config_.ring_slots;
    code = rte_eth_dev_adjust_nb_rx_tx_desc(port_id(), &receive_slots, &transmit_slots);
    const std::uint32_t least = least_buffers(plan_.queues, receive_slots);
    if (plan_.fills_rings && config_.buffers < least) {
        return Error{fmt::format("{}: {} buffers are too few for {} receive rings of {} and what is sent", facts_.name,
                                 config_.buffers, plan_.queues, receive_slots),
                     fmt::format("give --buffers {} or more, or fewer lcores", least)};
    }
    const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port_id()));
    for (std::uint16_t queue = 0; code == 0 && queue < plan_.queues; ++queue) {
        code = rte_eth_rx_queue_setup(port_id(), queue, receive_slots, socket, nullptr, pool());
        if (code == 0) {
            code = rte_eth_tx_queue_setup(port_id(), queue, transmit_slots, socket, nullptr);
        }
    }
    if (code != 0) {
        return device_error(facts_, "setting up its queues", code);
    }
    code = rte_eth_dev_start(port_id());
    if (code != 0) {
        return device_error(facts_, "starting", code);
    }
    started_ = true;
    code = plan_.asks_once ? await_link(port_id()) : 0;
    return code == 0 ? Status{Nothing{}} : device_error(facts_, "starting again, for want of a link,", code);
}

// Offers the rules to the driver. If the driver takes none, software tells the packets apart, and describe() reports
// that.
void Device::steer() {
    rte_flow_error refusal{};
    for (const Traffic traffic : traffic_to_steer(isolated_)) {
        const FlowRule rule(traffic, plan_.queues);
        if (rte_flow_create(port_id(), rule.attributes(), rule.pattern(), rule.actions(), &refusal) == nullptr) {
            steering_ = fmt::format("no rte_flow rule for {}, told apart in software", name_of(traffic));
            rte_flow_flush(port_id(), &refusal);
            if (isolated_) {  // otherwise nothing at all would arrive
                steering_ += "; port not isolated";
                isolated_ = rte_flow_isolate(port_id(), 0, &refusal) != 0;
            }
            return;
        }
    }
    steering_ = isolated_ ? "isolated, RoCE steered by rte_flow" : "RoCE steered by rte_flow";
}

Device::~Device() {
    if (started_ && plan_.fence_disconnects) {
        // net_memif tears a connection down on DPDK's control thread when its peer goes, without a lock against a close
        // on another thread (DPDK 22.11). Here the close runs on the control thread, which orders the two.
        std::uint16_t id = port_id();
        run_on_control_thread([](void* port) { close_port(*static_cast<std::uint16_t*>(port)); }, &id);
    } else if (started_) {
        close_port(port_id());
    }
    exchange_.reset();
    pool_.reset();
}

void Device::receive_groups() noexcept {
    if (rte_eth_allmulticast_enable(config_.port_id) != 0) {
        (void)rte_eth_promiscuous_enable(config_.port_id);
    }
}

std::uint32_t Device::buffers_in_use() const noexcept {
    return rte_mempool_in_use_count(pool());
}

std::string Device::describe() const {
    const char* spread = plan_.rss ? "RSS" : "software";
    return fmt::format(
        "{} ({}): MTU {}, {} of {} queues{}, {} buffers of {} bytes{}, IPv4 checksum by {}, ICRC by software, {}",
        facts_.name, facts_.driver, plan_.link_mtu_bytes, plan_.queues, facts_.max_queues,
        workers() > 1 ? fmt::format(" for {} workers spread by {}", workers(), spread) : "", config_.buffers,
        plan_.data_room_bytes, pool_->remark(), plan_.ipv4_checksum_offload ? "device" : "software", steering_);
}

}  // namespace cairn::pmd
