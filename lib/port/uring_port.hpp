// UringPort: RoCEv2 over a UDP socket of the kernel. It needs no NIC of its own and no privilege. A turn's datagrams to
// one peer leave as one GSO send. They arrive as one GRO batch, and its segments are handed on where they lie.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/mem/region.hpp"
#include "lib/port/block_pool.hpp"
#include "lib/port/group_sockets.hpp"
#include "lib/port/ip_id.hpp"
#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"
#include "lib/port/socket_epoll.hpp"
#include "lib/port/socket_io.hpp"
#include "lib/port/socket_queues.hpp"
#include "lib/port/uring_counters.hpp"

namespace cairn::port {

struct UringPortConfig {
    net::IpAddress local{};
    std::uint16_t udp_port = 4791;
    SocketMode mode = SocketMode::Defer;
    std::uint16_t buffers = 1024;  // each for one datagram to send
    std::uint16_t batches = 64;    // each for up to 64 KB received
    std::uint8_t traffic_class = 0;
    std::string pcap;  // like SocketQueuesConfig::pcap
};

// May be opened on any thread. Then belongs to one thread.
class UringPort final : public Port {
public:
    // Opens the port of the only worker of its address. Falls back to plain system calls if io_uring is refused;
    // describe() then gives the reason. Errors: as SocketQueues::open(); no memory.
    static Result<std::unique_ptr<UringPort>> open(const UringPortConfig& config);
    // Opens the port of one of several workers. `queues` gives the address, the UDP port and the capture. Each worker
    // has at most one port at a time.
    static Result<std::unique_ptr<UringPort>> open(const UringPortConfig& config, std::shared_ptr<SocketQueues> queues,
                                                   std::uint32_t worker);
    ~UringPort() override;

    [[nodiscard]] std::size_t receive_burst(std::span<PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_; }
    [[nodiscard]] std::size_t transmit_burst(std::span<TxPacket> packets, Instant now) noexcept override;
    [[nodiscard]] std::size_t allocate_burst(std::span<PacketRef> out) noexcept override;
    void release_burst(std::span<PacketRef> packets) noexcept override;
    // Returns true while enough batches are free. It counts batches, since each datagram handed out may be a segment of
    // a batch of its own.
    [[nodiscard]] bool has_spare_buffers() const noexcept override {
        return blocks_.free_batches() > config_.batches / kReserve;
    }
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return true; }
    [[nodiscard]] bool holds_back() const noexcept override { return backlog_; }
    void copy_tails(const TailFilter& which) noexcept override;
    [[nodiscard]] Path* open_path(const PathKey& key, Instant now) noexcept override;
    [[nodiscard]] Path* path_back(const WayBack& way, Instant now) noexcept override;
    Status join(const net::IpAddress& group) override;  // opens a socket: one more receive call every other turn
    void leave(const net::IpAddress& group) noexcept override;
    [[nodiscard]] bool loops_groups() const noexcept override { return true; }
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override {
        return arrival_.block != nullptr || !queue_.empty() ? Instant{} : Instant::never();  // now: datagrams wait
    }
    void wait(Duration most, int also) noexcept override;
    // Returns the descriptor. It is also readable when the socket has room again for datagrams that found its buffer
    // full before the last wait().
    [[nodiscard]] int descriptor() noexcept override;
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return config_.local; }
    [[nodiscard]] PortLimits limits() const noexcept override;
    [[nodiscard]] std::string describe() const override;
    void list_counters(telemetry::CounterList& list) const override { list.add(counters_); }

    // As transmit_burst(), but each datagram leaves alone and unchanged, broken or not. Packet generators use it. The
    // buffer holds all of the datagram, with an ICRC for ID 0. It may be shorter than a BTH and an ICRC.
    [[nodiscard]] std::size_t transmit_as_is(std::span<TxPacket> packets) noexcept;

    [[nodiscard]] const telemetry::CounterSet<UringCounter>& counters() const noexcept { return counters_; }
    // Returns the number of blocks that the caller holds, that wait to be sent, or that are not handed out completely.
    [[nodiscard]] std::size_t buffers_in_use() const noexcept;

private:
    // A batch: datagrams of one length (the last may be shorter) to one peer.
    struct SendBatch {
        Path* path = nullptr;
        std::uint32_t first_packet = 0;
        std::uint32_t packets = 0;
        std::uint32_t first_piece = 0;
        std::uint32_t pieces = 0;
        std::uint32_t bytes = 0;
        std::uint32_t most_packets = 0;
        std::uint16_t segment_bytes = 0;
        std::uint16_t owner = 0;  // of the peer's workers, if they have sockets of their own
        sockaddr_storage to{};
        alignas(cmsghdr) std::array<std::uint8_t, 64> control{};

        [[nodiscard]] bool takes(std::size_t len) const noexcept;
        [[nodiscard]] bool goes_on_with(const TxPacket& packet, std::uint16_t its_owner) const noexcept;
    };
    // The rest of a received batch that was not yet handed out.
    struct Arrival {
        Block* block = nullptr;
        Path* path = nullptr;  // pinned
        std::uint32_t bytes = 0;
        std::uint32_t at = 0;
        std::uint16_t segment_bytes = 0;
        std::uint16_t index = 0;
        std::uint16_t part = 0xffff;  // segments to hand out before answers leave
        std::uint8_t ecn = 0;
        bool handed_over = false;  // by another worker, which knew the owner
    };

    UringPort(const UringPortConfig& config, SocketQueue queue, std::unique_ptr<SocketIo> io, mem::Region memory);
    // The following functions are in uring_port_receive_datapath.cpp.
    [[nodiscard]] std::size_t receive_handed_over(std::span<PacketRef> out, Instant now) noexcept;
    [[nodiscard]] std::size_t receive_batch(std::span<PacketRef> out, Instant now) noexcept;
    [[nodiscard]] bool arm_receive() noexcept;
    void take_arrival(const net::IpAddress& local) noexcept;
    void begin_arrival(Block& block, const PathKey& key, std::uint32_t bytes) noexcept;
    [[nodiscard]] std::uint16_t part_of_arrival() noexcept;
    [[nodiscard]] bool next_segment(PacketRef& out, Instant now) noexcept;
    [[nodiscard]] bool judge(PacketRef& out, Instant now) noexcept;
    [[nodiscard]] bool hand_over(const std::uint8_t* bth, std::uint16_t len) noexcept;
    [[nodiscard]] bool admit(PacketRef& out) noexcept;
    void place(PacketRef& out, std::uint16_t len, bool last) noexcept;
    [[nodiscard]] bool verify(const PacketRef& packet, std::uint16_t index, std::uint16_t& ip_id, Instant now) noexcept;
    void end_arrival() noexcept;
    // The following functions are in uring_port_transmit_datapath.cpp.
    [[nodiscard]] std::size_t take_room(std::size_t packets) noexcept;
    [[nodiscard]] SendBatch& begin_batch(const TxPacket& first) noexcept;
    void append_batch(std::span<TxPacket> packets, std::size_t first) noexcept;
    void append_packet(SendBatch& batch, const TxPacket& packet) noexcept;
    [[nodiscard]] bool continues(const SendBatch& batch, const std::uint8_t* data) const noexcept;
    void stage(PacketRef& packet) noexcept;
    void append_piece(SendBatch& batch, const std::uint8_t* data, std::size_t bytes) noexcept;
    void address(SendBatch& batch, SocketMessage& message) noexcept;
    void exchange(SocketMessage* receive) noexcept;
    void finish_sends() noexcept;
    [[nodiscard]] bool finish(std::size_t index) noexcept;
    void send_singly(SendBatch& batch) noexcept;

    static constexpr std::size_t kSends = 256;
    static constexpr std::size_t kPackets = 1024;
    static constexpr std::size_t kPieces = kPackets * 3;
    static constexpr std::size_t kReserve = 4;        // one in this many batches is left to receive into
    static constexpr std::size_t kStagedBytes = 256;  // the longest datagram or headers that are copied

    UringPortConfig config_;
    SocketQueue queue_;
    GroupSockets groups_;
    SocketEpoll epoll_;  // of all sockets, from the first descriptor() on
    std::unique_ptr<SocketIo> io_;
    std::string io_refused_;  // the reason why the kernel refused a ring; empty: it did not
    mem::Region memory_;
    std::uint8_t* const tail_copies_;  // kMaxUdpPayloadBytes for each packet; pages come when tails are copied
    BlockPool blocks_;
    PathTable paths_;
    IpIdDeltas deltas_;
    IpIdHistories peer_ids_;
    DatagramCapture::Lane* const capture_;  // nullptr: nothing is recorded
    const bool gso_;
    Instant turn_{};  // the time of the previous call

    Arrival arrival_;
    Path stranger_;  // a new peer's path; the table gets it when a datagram of its arrival is whole
    SocketMessage receive_;
    iovec receive_piece_{};
    sockaddr_storage receive_from_{};
    alignas(cmsghdr) std::array<std::uint8_t, 128> receive_control_{};
    Block* receive_block_ = nullptr;
    std::uint32_t idle_polls_ = 0;  // polls that found nothing since the last arrival
    Instant found_empty_{};
    Instant empty_at_{};  // value of found_empty_ when the arrival came
    bool slept_ = false;

    std::size_t sends_ = 0;
    std::size_t packets_ = 0;
    std::size_t pieces_ = 0;
    std::size_t staged_ = 0;  // bytes
    bool backlog_ = false;    // some sends found the socket's buffer full
    std::vector<SendBatch> batches_;
    std::vector<SocketMessage> messages_;  // one per batch
    std::vector<TxPacket> sending_;        // their packets
    std::vector<iovec> send_pieces_;
    std::vector<std::uint8_t> staging_;  // copies of short datagrams and headers, so that the kernel sees few pieces
    telemetry::CounterSet<UringCounter> counters_;
};

}  // namespace cairn::port
