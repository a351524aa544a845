// EthdevPort: a worker's view of a Device, a Port that moves RoCEv2 datagrams as mbufs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/mem/counted_ranges.hpp"
#include "lib/net/host.hpp"
#include "lib/port/datagram.hpp"
#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"
#include "lib/telemetry/counters.hpp"
#include "pmd_glue/device.hpp"

struct rte_mbuf;
struct rte_mbuf_ext_shared_info;

namespace cairn::pmd {

struct EthdevPortConfig {
    std::uint16_t worker = 0;  // 0 ... device.workers() - 1
    net::IpAddress local{};
    std::uint16_t burst = 16;
    std::uint8_t prefix_bits = 0;             // of the link; 0: every peer is on it
    std::uint8_t traffic_class = 0;           // of what is sent
    std::optional<net::IpAddress> gateway{};  // for peers that are not on the link
};

// X(enumerator, counter name, what non-zero means)
#define CAIRN_ETHDEV_COUNTERS(X)                                                                            \
    X(Received, "port_received", "datagrams handed to the engine")                                          \
    X(Transmitted, "port_transmitted", "datagrams given to the device")                                     \
    X(Forwarded, "port_forwarded", "frames that reached another worker than theirs and were passed on")     \
    X(Linearized, "port_linearized", "frames that came in several segments and were copied together")       \
    X(TailCopied, "port_tail_copied", "payloads copied because the device cannot send from where they lie") \
    X(TailsKept, "port_tails_kept", "times the device kept payloads for too long: its link is down")        \
    X(BadIcrc, "port_bad_icrc", "datagrams whose ICRC is wrong: damage, or a peer that miscounts")          \
    X(BadOffload, "port_bad_checksum_hw", "frames whose IPv4 checksum the device found wrong")              \
    X(TooLong, "port_too_long", "frames longer than a buffer: the sender's MTU is larger than ours")        \
    X(Unresolved, "port_unresolved", "datagrams dropped because the neighbour has not answered in time")    \
    X(NoPath, "port_no_path", "datagrams from more peers than the path table holds")                        \
    X(NoBuffer, "port_no_buffer", "buffers asked for while the pool was empty: raise --buffers")            \
    X(RingFull, "port_ring_full", "frames lost between workers: the one they belong to is too slow")        \
    X(NotShared, "port_not_shared", "ARP or ND messages kept from other workers: a flood of them")

CAIRN_DECLARE_COUNTERS(EthdevCounter, CAIRN_ETHDEV_COUNTERS);

// Moves a worker's datagrams. Created on any thread, then driven by one worker. The device outlives it.
class EthdevPort final : public port::Port {
public:
    EthdevPort(Device& device, const EthdevPortConfig& config);
    ~EthdevPort() override;

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept override;
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override;
    void release_burst(std::span<port::PacketRef> packets) noexcept override;
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t> range) const noexcept override;
    [[nodiscard]] bool attach(std::span<const std::uint8_t> range) override;
    // Detaches memory. While the device keeps tails that it did not give back in time, the memory stays mapped for it.
    void detach(std::span<const std::uint8_t> range) noexcept override;
    void settle_tails() noexcept override;
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant now) noexcept override;
    [[nodiscard]] port::Path* path_back(const port::WayBack& way, Instant now) noexcept override;
    // Joins a group. Each worker that joined it receives a copy, also of datagrams that other workers send to the
    // group.
    Status join(const net::IpAddress& group) override;
    void leave(const net::IpAddress& group) noexcept override;
    void on_timeout(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return next_ask_; }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return config_.local; }
    [[nodiscard]] port::PortLimits limits() const noexcept override;
    [[nodiscard]] std::string describe() const override;
    void list_counters(telemetry::CounterList& list) const override;

    // Sends up to `count` frames, for packet generators. `make(index, out)` writes each frame whole, Ethernet header
    // first, and returns its size; nothing checks it. Returns how many frames the device took.
    template <class Make>
    [[nodiscard]] std::size_t transmit_frames(std::size_t count, Make&& make) noexcept {
        std::array<port::PacketRef, kMaxBurst> buffers;
        const std::size_t got = allocate_burst(std::span(buffers).first(std::min(count, kMaxBurst)));
        for (std::size_t i = 0; i < got; ++i) {
            const std::span<std::uint8_t> frame = whole_frame(buffers[i]);
            set_frame_bytes(buffers[i], make(i, frame));
        }
        return send_buffers(std::span(buffers).first(got));
    }

    [[nodiscard]] const telemetry::CounterSet<EthdevCounter>& counters() const noexcept { return counters_; }
    [[nodiscard]] const net::Host& host() const noexcept { return host_; }
    [[nodiscard]] const port::PathTable& paths() const noexcept { return paths_; }
    [[nodiscard]] const telemetry::CounterSet<port::FrameVerdict>& verdicts() const noexcept { return verdicts_; }

private:
    // ethdev_port_receive_datapath.cpp
    [[nodiscard]] std::uint16_t collect_from_others(rte_mbuf** frames, std::uint16_t wanted) noexcept;
    [[nodiscard]] bool accept(rte_mbuf* frame, port::PacketRef& out, Instant now) noexcept;
    [[nodiscard]] bool accept_slowly(rte_mbuf* frame, port::Path*& cached, port::PacketRef& out, Instant now) noexcept;
    void hand_over(rte_mbuf* frame, port::Path& path, port::PacketRef& out) const noexcept;
    void notice(port::Path::Arrival arrival, port::Path& path, const std::uint8_t* frame, Instant now) noexcept;
    void judged(port::PacketRef& packet, bool icrc_ok) noexcept;
    [[nodiscard]] rte_mbuf* in_one_piece(rte_mbuf* chain) noexcept;
    [[nodiscard]] bool pass_on(rte_mbuf& frame) noexcept;
    [[nodiscard]] bool pass_to_owner(rte_mbuf& frame) noexcept;
    void send_for_others() noexcept;
    // ethdev_port_transmit_datapath.cpp
    [[nodiscard]] bool prepare(port::TxPacket& packet) noexcept;
    [[nodiscard]] bool attach_tail(port::TxPacket& packet) noexcept;
    void detach_tail(port::TxPacket& packet) noexcept;
    [[nodiscard]] bool gives_tails_back() noexcept;
    void release_detached() noexcept;
    void copy_tail(port::TxPacket& packet) noexcept;
    void prepare_tail(port::TxPacket& packet) noexcept;
    void seal_with_tail(port::TxPacket& packet) noexcept;
    [[nodiscard]] std::size_t send(rte_mbuf** frames, std::size_t count) noexcept;
    void keep_for_neighbour(port::TxPacket& packet, Instant now) noexcept;
    void release_kept(Instant now) noexcept;
    [[nodiscard]] std::span<std::uint8_t> whole_frame(const port::PacketRef& buffer) const noexcept;
    void set_frame_bytes(const port::PacketRef& buffer, std::size_t bytes) const noexcept;
    [[nodiscard]] std::size_t send_buffers(std::span<port::PacketRef> buffers) noexcept;
    // ethdev_port_neighbours.cpp
    void on_other_frame(rte_mbuf& frame, Instant now) noexcept;
    void share(const rte_mbuf& frame, Instant now) noexcept;
    void pass_copy(const rte_mbuf& frame, std::uint16_t worker) noexcept;
    void pass_to_members(const rte_mbuf& frame) noexcept;
    [[nodiscard]] rte_mbuf* copy_for_members(const port::PacketRef& packet) noexcept;
    void tell_groups() noexcept;
    void find_way(port::Path& path, Instant now) noexcept;
    void follow_changes(Instant now) noexcept;
    void follow(port::PathTable::Station& station, const std::optional<net::MacAddress>& mac, Instant now) noexcept;
    void doubt(port::Path& path, const net::MacAddress& from, Instant now) noexcept;
    void settle_doubts(Instant now) noexcept;
    void follow_name(const net::Host::Name& name, Instant now) noexcept;
    void want(const port::Path& path, Instant now) noexcept;
    void plan_next_ask() noexcept;
    void resolve(port::Path& path, const net::MacAddress& remote) const noexcept;
    [[nodiscard]] std::span<std::uint8_t> room_of(rte_mbuf& buffer) const noexcept;
    void send_other(rte_mbuf* frame, std::size_t bytes) noexcept;

    // A datagram that waits for the MAC of its next hop. Its path is pinned.
    struct Kept {
        port::PacketRef packet{};
        Instant until{};
    };

    // A peer whose datagrams come from another Ethernet address than that of its path.
    struct Doubt {
        net::IpAddress remote{};
        net::MacAddress from{};
    };

    static constexpr std::size_t kDoubts = 16;
    static constexpr std::size_t kPathCache = 64;
    static constexpr std::size_t kKept = 16;
    static constexpr Duration kKeptFor = seconds(1);
    static constexpr std::size_t kMaxBurst = 64;

    // The members that every packet needs lie together.
    Device& device_;
    rte_mempool* pool_;
    std::uint16_t port_id_;
    std::uint16_t queue_;  // kNoQueue: frames come and go through the exchange
    std::uint16_t frames_at_once_;
    bool checksum_offload_;
    Exchange* exchange_;
    EthdevPortConfig config_;
    std::array<port::Path*, kPathCache> path_cache_{};
    telemetry::CounterSet<EthdevCounter> counters_;

    telemetry::CounterSet<port::FrameVerdict> verdicts_;
    std::unique_ptr<rte_mbuf_ext_shared_info> tails_;  // reference count: 1 + tails that the device still holds
    bool keeps_tails_ = false;                         // they did not come back within a wait
    Instant next_ask_ = Instant::never();
    std::array<Kept, kKept> kept_{};
    std::size_t kept_count_ = 0;
    std::array<Doubt, kDoubts> doubts_{};
    std::size_t doubts_count_ = 0;
    Instant share_from_{};  // start of the time that `shared_` counts for
    std::uint32_t shared_ = 0;
    bool fresh_ = true;  // the current frame came from the device, not from another worker
    Instant empty_at_{};
    Instant polled_at_{};      // time of the last poll
    bool full_burst_ = false;  // the last poll filled the burst: more frames may wait
    port::PathTable paths_;
    net::Host host_;
    std::vector<net::IpAddress> groups_;
    mem::CountedRanges attached_;
};

}  // namespace cairn::pmd
