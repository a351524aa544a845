// Device: one DPDK port that was set up for RoCEv2, with queues, buffer pool, offloads and steering. Its EthdevPorts,
// one per worker, move the packets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/result.hpp"
#include "lib/net/address.hpp"
#include "pmd_glue/device_plan.hpp"
#include "pmd_glue/dma_memory.hpp"
#include "pmd_glue/packet_pool.hpp"

namespace cairn::pmd {

class Exchange;

struct DeviceConfig {
    std::uint16_t port_id = 0;
    DeviceWish wish{};  // a path MTU of 0 means the largest that the link carries as it is
    std::uint16_t ring_slots = 1024;
    std::uint32_t buffers = 16384;
};

// Returns false for devices that only processes of this machine share.
[[nodiscard]] bool reaches_network(std::uint16_t port_id);

// A DPDK port that was set up. Opened and closed on the main thread. The workers of its ports have stopped before it
// closes.
class Device {
public:
    static Result<std::unique_ptr<Device>> open(const DeviceConfig& config);
    // Returns the facts about a port before it is opened.
    static Result<DeviceFacts> facts_of(std::uint16_t port_id);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    [[nodiscard]] std::uint16_t port_id() const noexcept { return config_.port_id; }
    [[nodiscard]] std::uint16_t workers() const noexcept { return config_.wish.workers; }
    [[nodiscard]] std::uint16_t path_mtu_bytes() const noexcept { return config_.wish.path_mtu_bytes; }
    [[nodiscard]] const DevicePlan& plan() const noexcept { return plan_; }
    [[nodiscard]] const std::string& name() const noexcept { return facts_.name; }
    [[nodiscard]] const net::MacAddress& mac() const noexcept { return mac_; }
    [[nodiscard]] rte_mempool* pool() const noexcept { return pool_->get(); }
    [[nodiscard]] mem::PageKind buffer_pages() const noexcept { return pool_->page_kind(); }
    [[nodiscard]] DmaMemory& dma_memory() noexcept { return *dma_memory_; }
    // Returns the exchange between the workers; nullptr if there is one worker.
    [[nodiscard]] Exchange* exchange() const noexcept { return exchange_.get(); }
    // Lets frames to multicast addresses in. A device that has no such setting does not filter them.
    void receive_groups() noexcept;
    [[nodiscard]] std::uint32_t buffers_in_use() const noexcept;
    // Returns one line for the operator: the work of the device, and the work that software does instead.
    [[nodiscard]] std::string describe() const;

private:
    explicit Device(const DeviceConfig& config);
    Status configure();
    Status make_pool();
    Status set_up_queues();
    void steer();

    DeviceConfig config_;
    DeviceFacts facts_;
    DevicePlan plan_;
    net::MacAddress mac_{};
    std::optional<PacketPool> pool_;
    std::unique_ptr<DmaMemory> dma_memory_;
    std::unique_ptr<Exchange> exchange_;
    std::string steering_;
    bool started_ = false;
    bool isolated_ = false;
};

}  // namespace cairn::pmd
