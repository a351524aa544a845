#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eal_memconfig.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include <algorithm>

#include "lib/base/secret.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint32_t kPaths = 4096;             // of 3 KB each
constexpr std::uint64_t kSettlesPerSecond = 1000;  // a wait for a device that keeps payloads takes 1 s / 1000 at most

// Is never called: it would run after the last reference, and the port itself holds one.
void never_freed(void*, void*) {}

// Returns whether the byte is in EAL's own memory. Memory that was attached for some device is known to EAL, too, and
// mapped for that device alone.
bool in_eal_memory(const std::uint8_t* at) noexcept {
    const rte_memseg_list* const segments = rte_mem_virt2memseg_list(at);
    return segments != nullptr && segments->external == 0;
}

}  // namespace

EthdevPort::EthdevPort(Device& device, const EthdevPortConfig& config)
    : device_(device),
      pool_(device.pool()),
      port_id_(device.port_id()),
      queue_(config.worker < device.plan().queues ? config.worker : kNoQueue),
      frames_at_once_(device.plan().frames_at_once),
      checksum_offload_(device.plan().ipv4_checksum_offload),
      exchange_(device.exchange()),
      config_(config),
      tails_(std::make_unique<rte_mbuf_ext_shared_info>()),
      paths_(kPaths, 0, draw_secret()),
      host_({device.mac(), config.local, config.prefix_bits, config.gateway}),
      attached_(device.dma_memory()) {
    CAIRN_ASSERT(config.worker < device.workers());
    config_.burst = std::clamp<std::uint16_t>(config_.burst, 1, kMaxBurst);
    paths_.set_traffic_class(config.traffic_class);
    tails_->free_cb = never_freed;
    rte_mbuf_ext_refcnt_set(tails_.get(), 1);
}

EthdevPort::~EthdevPort() {
    release_kept(Instant::never());
    settle_tails();
}

port::PortLimits EthdevPort::limits() const noexcept {
    const std::uint32_t lower = config_.local.is_v4() ? 28 : 48;
    const auto frame_room = static_cast<std::uint32_t>(device_.plan().frame_bytes - port::Path::kEthernetBytes);
    port::PortLimits limits;
    limits.max_udp_payload_bytes =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(device_.plan().link_mtu_bytes, frame_room) - lower);
    limits.burst = config_.burst;
    limits.poll_only = true;
    limits.buffer_pages = device_.buffer_pages();
    return limits;
}

std::string EthdevPort::describe() const {
    return fmt::format("worker {} as {} on {}, burst {}", config_.worker, config_.local.text(),
                       queue_ == kNoQueue ? "no queue of its own" : fmt::format("queue {}", queue_), config_.burst);
}

void EthdevPort::list_counters(telemetry::CounterList& list) const {
    list.add(counters_).add(verdicts_).add(host_.drops());
}

bool EthdevPort::can_send_from(std::span<const std::uint8_t> range) const noexcept {
    if (!device_.plan().segments || queue_ == kNoQueue || range.empty()) {
        return false;
    }
    // With physical addresses a range may cross pages that are not adjacent.
    return device_.plan().memory == SentMemory::Any ||
           (rte_eal_iova_mode() == RTE_IOVA_VA && in_eal_memory(range.data()) && in_eal_memory(&range.back())) ||
           attached_.covers(range);
}

bool EthdevPort::attach(std::span<const std::uint8_t> range) {
    const SentMemory memory = device_.plan().memory;
    const bool takes_more = memory == SentMemory::Attached || memory == SentMemory::Mapped;
    if (!device_.plan().segments || queue_ == kNoQueue || !takes_more || rte_eal_iova_mode() != RTE_IOVA_VA) {
        return can_send_from(range);
    }
    release_detached();
    return attached_.attach(range);
}

void EthdevPort::detach(std::span<const std::uint8_t> range) noexcept {
    attached_.retire(range);
    release_detached();
}

void EthdevPort::release_detached() noexcept {
    if (gives_tails_back()) {
        attached_.release_retired();
    }
}

// Waits until the device has given back its payloads. A device whose link is down may keep them for ever. So there is
// one wait, and none again until all have come back.
void EthdevPort::settle_tails() noexcept {
    const std::uint64_t until = rte_get_tsc_cycles() + rte_get_tsc_hz() / kSettlesPerSecond;
    while (rte_mbuf_ext_refcnt_read(tails_.get()) != 1) {
        rte_eth_tx_done_cleanup(port_id_, queue_, 0);
        rte_pause();
        if (!gives_tails_back() || rte_get_tsc_cycles() >= until) {
            counters_.count(EthdevCounter::TailsKept);
            keeps_tails_ = true;
            return;
        }
    }
}

port::Path* EthdevPort::open_path(const port::PathKey& key, Instant now) noexcept {
    port::Path* path = paths_.intern(key);
    if (path != nullptr && key.remote.is_group()) {
        resolve(*path, key.remote.group_mac());
    } else if (path != nullptr && !path->resolved()) {
        find_way(*path, now);
    }
    return path;
}

Status EthdevPort::join(const net::IpAddress& group) {
    if (group.is_v4() != config_.local.is_v4()) {
        return Error{
            fmt::format("{} and this port's address {} are of two families", group.text(), config_.local.text()),
            "use a group of the port's family"};
    }
    device_.receive_groups();
    groups_.push_back(group);
    tell_groups();
    return Nothing{};
}

void EthdevPort::leave(const net::IpAddress& group) noexcept {
    std::erase(groups_, group);
    tell_groups();
}

void EthdevPort::tell_groups() noexcept {
    if (exchange_ == nullptr) {
        return;
    }
    std::uint64_t bits = 0;
    for (const net::IpAddress& group : groups_) {
        bits |= Exchange::bit_of(group.group_mac());
    }
    exchange_->set_groups(config_.worker, bits);
}

}  // namespace cairn::pmd
