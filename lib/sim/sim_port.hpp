// SimPort: the Port of one node of a simulated network, or of one of its queues. Whole frames travel, so the production
// code makes and judges lower headers and ICRC.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/port/datagram.hpp"
#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"
#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

struct SimPortCounters {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;      // frames given to the engine
    std::uint64_t bad_icrcs = 0;  // of these, damaged ones
    std::uint64_t foreign = 0;    // frames for others, or without room for their path
    std::uint64_t unheard = 0;    // frames that found no buffer
    std::uint64_t refused = 0;    // packets that a full ring did not take
    std::uint64_t starved = 0;    // buffers that an empty pool did not give
};

class SimPort final : public port::Port {
public:
    // A frame that the port gives to its engine.
    using Witness = std::function<void(const Frame& frame, bool icrc_ok)>;

    static constexpr std::uint16_t kRoom = 4352;
    static constexpr std::size_t kHeadroom = 128;

    // Makes the port. `paths` is the capacity of the path table; 0: that of paths_among().
    SimPort(Network& network, std::size_t node, std::size_t buffers, std::uint64_t seed, std::size_t paths = 0,
            std::uint8_t queue = 0);

    // Returns how many paths a port needs among `nodes` nodes. One node may pin all that a table gives to one unknown
    // peer, and another may use as many as a table gives to each. There is still a path for each node.
    [[nodiscard]] static constexpr std::uint32_t paths_among(std::size_t nodes) noexcept {
        return static_cast<std::uint32_t>(4 * (nodes + 8));
    }

    void set_faults(const PortFaults& faults) noexcept { faults_ = faults; }
    // Sets the traffic class of all that the port sends on paths made from now on.
    void set_traffic_class(std::uint8_t traffic_class) noexcept { paths_.set_traffic_class(traffic_class); }

    // Sets the largest UDP payload that the port's link carries.
    void set_most_bytes(std::uint16_t most_bytes) noexcept { most_bytes_ = most_bytes; }
    // Chooses whether datagrams that the port sends to its own groups come back. They do with a socket, and do not with
    // a device.
    void set_loops_groups(bool loops) noexcept { loops_groups_ = loops; }
    void set_witness(Witness witness) { witness_ = std::move(witness); }

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept override;
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override;
    void release_burst(std::span<port::PacketRef> packets) noexcept override;
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return true; }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant now) noexcept override;
    [[nodiscard]] port::Path* path_back(const port::WayBack& way, Instant now) noexcept override;
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return network_.address_of(node_); }
    [[nodiscard]] port::PortLimits limits() const noexcept override { return {most_bytes_, 16, true}; }
    Status join(const net::IpAddress& group) override;
    void leave(const net::IpAddress& group) noexcept override { std::erase(groups_, group); }
    [[nodiscard]] bool loops_groups() const noexcept override { return loops_groups_; }
    [[nodiscard]] std::string describe() const override { return "simulated"; }

    // Sets how far the node's clock is ahead of the network's. The port gets the node's times.
    void set_clock_ahead(Duration ahead) noexcept { clock_ahead_ = ahead; }

    [[nodiscard]] std::size_t buffers_in_use() const noexcept { return storage_.size() - free_.size(); }
    [[nodiscard]] const SimPortCounters& counters() const noexcept { return counters_; }

private:
    using Buffer = std::vector<std::uint8_t>;
    [[nodiscard]] Buffer* take_buffer();
    void resolve(port::Path& path) noexcept;
    [[nodiscard]] bool take_in(const Frame& frame, port::PacketRef& out) noexcept;

    Network& network_;
    std::size_t node_;
    std::uint8_t queue_;
    Random random_;
    PortFaults faults_;
    port::PathTable paths_;
    std::size_t buffers_;                           // capacity of the pool; most buffers are never asked for
    std::vector<std::unique_ptr<Buffer>> storage_;  // the buffers that were asked for
    std::vector<Buffer*> free_;                     // the free ones of these
    Instant empty_at_{};
    bool full_burst_ = false;  // the last receive filled `out`: more frames may wait
    SimPortCounters counters_;
    Duration clock_ahead_{};
    std::uint16_t most_bytes_ = port::kMaxUdpPayloadBytes;
    bool loops_groups_ = false;
    std::vector<net::IpAddress> groups_;
    Witness witness_;
};

}  // namespace cairn::sim
