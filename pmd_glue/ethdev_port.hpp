// EthdevPort: a Port over one queue of any DPDK ethernet device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace cairn::pmd {

struct EthdevPortConfig {
    std::uint16_t port_id = 0;
    std::uint16_t queue_id = 0;
    net::IpAddress local{};
    std::uint16_t ring_slots = 1024;
    std::uint32_t buffers = 16384;
    std::uint16_t data_room_bytes = 0;  // 0: what suits the driver
    std::uint16_t burst = 16;
};

// X(member, operator text)
#define CAIRN_ETHDEV_COUNTERS(X)                                                              \
    X(received, "datagrams handed to the engine")                                             \
    X(transmitted, "datagrams given to the device")                                           \
    X(not_roce, "frames that are neither RoCEv2 nor ARP for us: other traffic on the link")   \
    X(bad_frame, "RoCEv2 frames with wrong lengths, checksums, fragments or addresses")       \
    X(bad_icrc, "datagrams whose ICRC is wrong: damage on the way, or a peer that miscounts") \
    X(unresolved, "datagrams dropped because the neighbour has not answered yet")             \
    X(no_path, "datagrams from more peers than the path table holds")                         \
    X(no_buffer, "allocations refused by an empty buffer pool")

struct EthdevCounters {
#define CAIRN_X(name, text) std::uint64_t name = 0;
    CAIRN_ETHDEV_COUNTERS(CAIRN_X)
#undef CAIRN_X
};

// Created on any thread, then driven by one worker.
class EthdevPort final : public port::Port {
public:
    static Result<std::unique_ptr<EthdevPort>> open(const EthdevPortConfig& config);
    ~EthdevPort() override;

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept override;
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override;
    void release_burst(std::span<port::PacketRef> packets) noexcept override;
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return false; }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant now) noexcept override;
    void on_timeout(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return next_ask_; }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return config_.local; }
    [[nodiscard]] port::PortLimits limits() const noexcept override;
    [[nodiscard]] std::string describe() const override;

    [[nodiscard]] const EthdevCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::uint32_t buffers_in_use() const noexcept;

private:
    explicit EthdevPort(const EthdevPortConfig& config);
    Status configure();
    // datapath
    [[nodiscard]] port::Path* path_of(const std::uint8_t* frame, std::size_t frame_bytes) noexcept;
    [[nodiscard]] bool accept(rte_mbuf* mbuf, port::PacketRef& out, Instant now) noexcept;
    void verify(std::span<port::PacketRef> packets) noexcept;
    // neighbours
    void on_arp(const std::uint8_t* frame, std::size_t frame_bytes, Instant now) noexcept;
    void send_arp(std::uint16_t operation, const net::MacAddress& to, std::uint32_t target_ip) noexcept;
    void learn(const net::IpAddress& address, const net::MacAddress& mac) noexcept;

    struct Neighbour {
        net::IpAddress address;
        net::MacAddress mac;
        bool known = false;
    };
    static constexpr std::size_t kPathCache = 64;
    static constexpr std::size_t kMaxBurst = 64;
    static constexpr std::size_t kNeighbours = 1024;

    EthdevPortConfig config_;
    net::MacAddress mac_{};
    rte_mempool* pool_ = nullptr;
    std::uint16_t data_room_bytes_ = 0;
    std::uint16_t link_mtu_bytes_ = 0;
    std::string driver_;
    bool started_ = false;
    Instant next_ask_ = Instant::never();
    EthdevCounters counters_;
    port::PathTable paths_;
    std::array<port::Path*, kPathCache> path_cache_{};
    std::vector<Neighbour> neighbours_;
};

}  // namespace cairn::pmd
