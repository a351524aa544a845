#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cstring>

#include "pmd_glue/ethdev_port.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint16_t kCacheMbufs = 256;
constexpr std::uint16_t kDefaultRoom = 2048;

Error device_error(std::uint16_t port_id, const char* step, int code) {
    return Error{fmt::format("port {}: {} refused: {}", port_id, step, rte_strerror(-code)),
                 "check the device arguments, --log-level=debug says more"};
}

}  // namespace

Result<std::unique_ptr<EthdevPort>> EthdevPort::open(const EthdevPortConfig& config) {
    if (rte_eth_dev_is_valid_port(config.port_id) == 0) {
        return Error{fmt::format("port {} does not exist ({} ports)", config.port_id, rte_eth_dev_count_avail()),
                     "add a --vdev or -a argument before \"--\", or choose another --port"};
    }
    std::unique_ptr<EthdevPort> port(new EthdevPort(config));
    const Status configured = port->configure();
    if (!configured.ok()) {
        return configured.error();
    }
    return port;
}

EthdevPort::EthdevPort(const EthdevPortConfig& config) : config_(config), paths_(16384) {
    neighbours_.reserve(kNeighbours);
    config_.burst = std::min<std::uint16_t>(config_.burst, kMaxBurst);
}

Status EthdevPort::configure() {
    const std::uint16_t id = config_.port_id;
    rte_eth_dev_info info{};
    int code = rte_eth_dev_info_get(id, &info);
    if (code != 0) {
        return device_error(id, "reading the device's limits", code);
    }
    driver_ = info.driver_name;
    // memif copies fastest when a buffer's data room is its slot size (default 2048).
    data_room_bytes_ = config_.data_room_bytes != 0 ? config_.data_room_bytes : kDefaultRoom;
    const auto pool_name = fmt::format("cairn_{}_{}", id, config_.queue_id);
    pool_ = rte_pktmbuf_pool_create(pool_name.c_str(), config_.buffers, kCacheMbufs, 0,
                                    static_cast<std::uint16_t>(data_room_bytes_ + RTE_PKTMBUF_HEADROOM),
                                    static_cast<int>(rte_socket_id()));
    if (pool_ == nullptr) {
        return Error{fmt::format("no memory for {} buffers of {} bytes", config_.buffers, data_room_bytes_),
                     "raise -m, or lower --buffers"};
    }
    const rte_eth_conf conf{};
    code = rte_eth_dev_configure(id, 1, 1, &conf);
    if (code != 0) {
        return device_error(id, "configuring one queue", code);
    }
    std::uint16_t receive_slots = config_.ring_slots;
    std::uint16_t transmit_slots = config_.ring_slots;
    code = rte_eth_dev_adjust_nb_rx_tx_desc(id, &receive_slots, &transmit_slots);
    if (code == 0) {
        code = rte_eth_rx_queue_setup(id, 0, receive_slots, rte_socket_id(), nullptr, pool_);
    }
    if (code == 0) {
        code = rte_eth_tx_queue_setup(id, 0, transmit_slots, rte_socket_id(), nullptr);
    }
    if (code != 0) {
        return device_error(id, "setting up its queue", code);
    }
    code = rte_eth_dev_start(id);
    if (code != 0) {
        return device_error(id, "starting", code);
    }
    started_ = true;
    rte_ether_addr address{};
    rte_eth_macaddr_get(id, &address);
    std::memcpy(mac_.octets.data(), address.addr_bytes, mac_.octets.size());
    std::uint16_t mtu = 0;
    link_mtu_bytes_ = rte_eth_dev_get_mtu(id, &mtu) == 0 && mtu != 0 ? mtu : 1500;
    if (driver_ == "net_memif") {  // it has no MTU: what fits a slot fits the link
        link_mtu_bytes_ = static_cast<std::uint16_t>(data_room_bytes_ - port::Path::kEthernetBytes);
    }
    return Nothing{};
}

EthdevPort::~EthdevPort() {
    if (started_) {
        rte_eth_dev_stop(config_.port_id);
        rte_eth_dev_close(config_.port_id);
    }
    rte_mempool_free(pool_);
}

port::PortLimits EthdevPort::limits() const noexcept {
    port::PortLimits limits;
    const std::uint32_t lower = config_.local.is_v4() ? 28 : 48;
    const auto frame_room = static_cast<std::uint32_t>(data_room_bytes_ - port::Path::kEthernetBytes);
    limits.max_udp_payload_bytes =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(link_mtu_bytes_, frame_room) - lower);
    limits.burst = config_.burst;
    limits.poll_only = true;
    return limits;
}

std::uint32_t EthdevPort::buffers_in_use() const noexcept {
    return rte_mempool_in_use_count(pool_);
}

std::string EthdevPort::describe() const {
    return fmt::format("port {} ({}): {}, {} buffers of {} bytes, checksums and ICRC in software, burst {}",
                       config_.port_id, driver_, config_.local.text(), config_.buffers, data_room_bytes_,
                       config_.burst);
}

port::Path* EthdevPort::open_path(const port::PathKey& key, Instant now) noexcept {
    if (key.local.is_v4() != key.remote.is_v4()) {
        return nullptr;
    }
    port::Path* path = paths_.intern(key);
    if (path != nullptr && !path->resolved()) {
        for (const Neighbour& neighbour : neighbours_) {
            if (neighbour.known && neighbour.address == key.remote) {
                path->resolve(mac_, neighbour.mac);
                return path;
            }
        }
        if (neighbours_.size() < kNeighbours) {
            neighbours_.push_back({key.remote, {}, false});
        }
        next_ask_ = now;
    }
    return path;
}

void EthdevPort::on_timeout(Instant now) noexcept {
    if (now < next_ask_) {
        return;
    }
    next_ask_ = Instant::never();
    for (const Neighbour& neighbour : neighbours_) {
        if (!neighbour.known && neighbour.address.is_v4()) {
            send_arp(1, net::kBroadcastMac, neighbour.address.v4());
            next_ask_ = now + milliseconds(100);
        }
    }
}

void EthdevPort::learn(const net::IpAddress& address, const net::MacAddress& mac) noexcept {
    for (Neighbour& neighbour : neighbours_) {
        if (neighbour.address == address) {
            neighbour.mac = mac;
            neighbour.known = true;
            paths_.for_each_to(address, [&](port::Path& path) { path.resolve(mac_, mac); });
        }
    }
}

}  // namespace cairn::pmd
