#include "pmd_glue/capture.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "lib/net/ethernet.hpp"
#include "lib/net/udp.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::pmd {

namespace {

constexpr unsigned kCaptureFrames = 8192;
constexpr unsigned kCopies = 8191;

std::int64_t unix_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// The time stamp travels in the headroom of the copied frame.
void stamp(rte_mbuf& copy, std::int64_t ns) noexcept {
    std::memcpy(copy.buf_addr, &ns, sizeof(ns));
}
Instant stamp_of(const rte_mbuf& copy) noexcept {
    Instant when;
    std::memcpy(&when.ns, copy.buf_addr, sizeof(when.ns));
    return when;
}

// Judges by the ports only. The reader of the capture sees if the frame is sound.
bool is_roce(const rte_mbuf& frame) noexcept {
    const std::span<const std::uint8_t> bytes(rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len);
    const auto word = [&bytes](std::size_t at) { return (std::uint32_t{bytes[at]} << 8U) | bytes[at + 1]; };
    constexpr std::size_t kIp = 14;
    if (bytes.size() < kIp + 20 + 8) {
        return false;
    }
    const bool v4 = word(12) == net::kEtherTypeIpv4 && bytes[kIp + 9] == net::kProtocolUdp;
    const bool v6 =
        word(12) == net::kEtherTypeIpv6 && bytes[kIp + 6] == net::kProtocolUdp && bytes.size() >= kIp + 40 + 8;
    const std::size_t udp = kIp + (v4 ? std::size_t{bytes[kIp] & 0xfU} * 4 : 40);
    return (v4 || v6) && bytes.size() >= udp + 4 && word(udp + 2) == net::kRoceUdpPort;
}

// NOLINTNEXTLINE(readability-function-size): the parameters are DPDK's
std::uint16_t on_received(std::uint16_t, std::uint16_t, rte_mbuf** frames, std::uint16_t count, std::uint16_t,
                          void* capture) {
    static_cast<Capture*>(capture)->record(frames, count);
    return count;
}

std::uint16_t on_transmit(std::uint16_t, std::uint16_t, rte_mbuf** frames, std::uint16_t count, void* capture) {
    static_cast<Capture*>(capture)->record(frames, count);
    return count;
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::start(const Device& device, const std::string& file_name, Frames wanted) {
    std::signal(SIGPIPE, SIG_IGN);  // the file may be a pipe, whose reader may leave
    auto writer = port::PcapWriter::open(file_name, {});
    if (!writer.ok()) {
        return writer.error();
    }
    std::unique_ptr<Capture> capture(new Capture(device.port_id(), file_name, std::move(writer).value(), wanted));
    const Status attached = capture->attach(device.plan().queues, device.plan().data_room_bytes);
    if (!attached.ok()) {
        return attached.error();
    }
    return capture;
}

Capture::Capture(std::uint16_t port_id, std::string file_name, std::unique_ptr<port::PcapWriter> writer, Frames wanted)
    : port_id_(port_id), file_name_(std::move(file_name)), writer_(std::move(writer)), wanted_(wanted) {}

Status Capture::attach(std::uint16_t queues, std::uint16_t data_room_bytes) {
    const auto name = fmt::format("cairn_capture_{}", port_id_);
    const auto socket = static_cast<int>(rte_socket_id());
    pool_ = rte_pktmbuf_pool_create(name.c_str(), kCopies, 0, 0,
                                    static_cast<std::uint16_t>(data_room_bytes + RTE_PKTMBUF_HEADROOM), socket);
    ring_ = rte_ring_create(name.c_str(), kCaptureFrames, socket, RING_F_SC_DEQ);
    if (pool_ == nullptr || ring_ == nullptr) {
        return Error{fmt::format("no memory for the capture {}", file_name_), "raise -m"};
    }
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
        hooks_.push_back({rte_eth_add_rx_callback(port_id_, queue, on_received, this), queue, true});
        hooks_.push_back({rte_eth_add_tx_callback(port_id_, queue, on_transmit, this), queue, false});
    }
    for (const Hook& hook : hooks_) {
        if (hook.callback == nullptr) {
            return Error{"this DPDK was built without receive and transmit callbacks", "leave --pcap out"};
        }
    }
    thread_.emplace(*writer_, [this] { drain(); });
    return Nothing{};
}

Capture::~Capture() {
    for (const Hook& hook : hooks_) {
        if (hook.callback != nullptr) {
            (hook.receive ? rte_eth_remove_rx_callback : rte_eth_remove_tx_callback)(port_id_, hook.queue,
                                                                                     hook.callback);
        }
    }
    thread_.reset();
    fmt::print(stderr, "{}\n", summary());
    rte_ring_free(ring_);
    rte_mempool_free(pool_);
}

void Capture::record(rte_mbuf* const* frames, std::uint16_t count) noexcept {
    if (count == 0) {
        return;
    }
    const std::int64_t now_ns = unix_ns();
    for (std::uint16_t i = 0; i < count; ++i) {
        if (wanted_ == Frames::Roce && !is_roce(*frames[i])) {
            continue;
        }
        rte_mbuf* copy = rte_pktmbuf_copy(frames[i], pool_, 0, UINT32_MAX);
        if (copy == nullptr) {
            missed_.fetch_add(1, std::memory_order_relaxed);
            continue;
        }
        stamp(*copy, now_ns);
        if (rte_ring_mp_enqueue(ring_, copy) != 0) {
            rte_pktmbuf_free(copy);
            missed_.fetch_add(1, std::memory_order_relaxed);
        }
    }
}

void Capture::drain() {
    void* taken = nullptr;
    while (rte_ring_sc_dequeue(ring_, &taken) == 0) {
        auto* copy = static_cast<rte_mbuf*>(taken);
        std::array<std::span<const std::uint8_t>, RTE_MBUF_MAX_NB_SEGS / 1024> pieces;
        std::size_t count = 0;
        for (const rte_mbuf* part = copy; part != nullptr && count < pieces.size(); part = part->next) {
            pieces[count++] = {rte_pktmbuf_mtod(part, const std::uint8_t*), part->data_len};
        }
        writer_->add(std::span(pieces).first(count), stamp_of(*copy));
        rte_pktmbuf_free(copy);
    }
}

std::string Capture::summary() const {
    return fmt::format("{}: {} frames written, {} missed", file_name_, writer_->frames_taken(),
                       missed_.load(std::memory_order_relaxed) + writer_->frames_lost());
}

}  // namespace cairn::pmd
