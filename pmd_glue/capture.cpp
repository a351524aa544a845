#include "pmd_glue/capture.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <csignal>
#include <span>
#include <utility>

#include "lib/net/ethernet.hpp"
#include "lib/net/udp.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::pmd {

namespace {

constexpr std::size_t kMostPieces = 64;

Instant unix_now() noexcept {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
}

// Judges by the ports only. The reader of the capture sees whether the frame is sound.
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
                          void* lane) {
    static_cast<Capture::Lane*>(lane)->record(frames, count);
    return count;
}

std::uint16_t on_transmit(std::uint16_t, std::uint16_t, rte_mbuf** frames, std::uint16_t count, void* lane) {
    static_cast<Capture::Lane*>(lane)->record(frames, count);
    return count;
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::start(const Device& device, const std::string& file_name, Frames wanted) {
    std::signal(SIGPIPE, SIG_IGN);  // the file may be a pipe, which its reader may close
    auto writer = port::PcapWriter::open(file_name, {});
    if (!writer.ok()) {
        return writer.error();
    }
    std::unique_ptr<Capture> capture(new Capture(device.port_id(), std::move(writer).value()));
    const Status attached = capture->attach(device.plan().queues, wanted);
    if (!attached.ok()) {
        return attached.error();
    }
    return capture;
}

Capture::Capture(std::uint16_t port_id, std::unique_ptr<port::PcapWriter> writer) : port_id_(port_id) {
    writers_.push_back(std::move(writer));
}

Status Capture::attach(std::uint16_t queues, Frames wanted) {
    const auto add_lane = [&]() -> Lane* {
        writers_.push_back(writers_.front()->beside());
        lanes_.push_back(std::make_unique<Lane>(*writers_.back(), wanted));
        return lanes_.back().get();
    };
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
        hooks_.push_back({rte_eth_add_rx_callback(port_id_, queue, on_received, add_lane()), queue, true});
        hooks_.push_back({rte_eth_add_tx_callback(port_id_, queue, on_transmit, add_lane()), queue, false});
    }
    for (const Hook& hook : hooks_) {
        if (hook.callback == nullptr) {
            return Error{"this DPDK was built without receive and transmit callbacks", "leave --pcap out"};
        }
    }
    return Nothing{};
}

Capture::~Capture() {
    for (const Hook& hook : hooks_) {
        if (hook.callback != nullptr) {
            (hook.receive ? rte_eth_remove_rx_callback : rte_eth_remove_tx_callback)(port_id_, hook.queue,
                                                                                     hook.callback);
        }
    }
    port::finish(writers_);
    fmt::print(stderr, "{}\n", summary());
}

void Capture::Lane::record(const rte_mbuf* const* frames, std::uint16_t count) noexcept {
    const Instant now = count == 0 ? Instant{} : unix_now();
    for (std::uint16_t i = 0; i < count; ++i) {
        if (wanted_ == Frames::Roce && !is_roce(*frames[i])) {
            continue;
        }
        std::array<std::span<const std::uint8_t>, kMostPieces> pieces;
        std::size_t used = 0;
        for (const rte_mbuf* part = frames[i]; part != nullptr && used < pieces.size(); part = part->next) {
            pieces[used++] = {rte_pktmbuf_mtod(part, const std::uint8_t*), part->data_len};
        }
        writer_.add(std::span(pieces).first(used), now);
    }
    writer_.flush();
}

std::string Capture::summary() const {
    std::uint64_t taken = 0;
    std::uint64_t lost = 0;
    for (const auto& writer : writers_) {
        taken += writer->frames_taken();
        lost += writer->frames_lost();
    }
    return fmt::format("{}: {} frames written, {} missed", writers_.front()->path(), taken, lost);
}

}  // namespace cairn::pmd
