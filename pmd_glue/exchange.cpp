#include "pmd_glue/exchange.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::pmd {

namespace {

constexpr unsigned kLaneFrames = 1024;

}  // namespace

Exchange::Exchange(std::uint16_t workers, HeapBlock memory)
    : workers_(workers),
      owners_(workers),
      memory_(std::move(memory)),
      rings_(std::size_t{2} * workers * workers, nullptr),
      groups_(workers) {}

Exchange::Exchange(Exchange&& other) noexcept
    : workers_(other.workers_),
      owners_(other.owners_),
      memory_(std::move(other.memory_)),
      rings_(std::exchange(other.rings_, {})),
      groups_(std::exchange(other.groups_, {})) {}

// Makes the rings in one piece of memory. EAL has names for 2,560 pieces, and 37 workers would need more.
Result<Exchange> Exchange::make(std::uint16_t workers) {
    const auto ring_bytes = static_cast<std::size_t>(rte_ring_get_memsize(kLaneFrames));
    const std::size_t rings = std::size_t{2} * workers * (workers - 1U);
    Result<HeapBlock> memory =
        HeapBlock::allocate(rings * ring_bytes, fmt::format("the rings between {} workers", workers).c_str());
    if (!memory.ok()) {
        return memory.error();
    }
    Exchange exchange(workers, std::move(memory).value());
    std::uint8_t* next = exchange.memory_.bytes().data();
    for (const Lane lane : {Lane::Received, Lane::ToSend}) {
        for (std::uint16_t from = 0; from < workers; ++from) {
            for (std::uint16_t to = 0; to < workers; ++to) {
                if (from != to) {
                    auto* const between = reinterpret_cast<rte_ring*>(next);
                    const int code = rte_ring_init(between, "cairn", kLaneFrames, RING_F_SP_ENQ | RING_F_SC_DEQ);
                    CAIRN_ASSERT(code == 0);
                    exchange.ring(lane, from, to) = between;
                    next += ring_bytes;
                }
            }
        }
    }
    return exchange;
}

Exchange::~Exchange() {
    for (rte_ring* each : rings_) {
        void* frame = nullptr;
        while (each != nullptr && rte_ring_sc_dequeue(each, &frame) == 0) {
            rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
        }
    }
}

bool Exchange::pass(Lane lane, std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept {
    return rte_ring_sp_enqueue(ring(lane, from, to), frame) == 0;
}

bool Exchange::pass_copy(std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept {
    const bool has_room = rte_ring_free_count(ring(Lane::Received, from, to)) > kLaneFrames / 2;
    return has_room && pass(Lane::Received, from, to, frame);
}

std::size_t Exchange::collect(Lane lane, std::uint16_t to, std::span<rte_mbuf*> out) noexcept {
    std::size_t count = 0;
    for (std::uint16_t from = 0; from < workers_ && count < out.size(); ++from) {
        if (from == to) {
            continue;
        }
        count += rte_ring_sc_dequeue_burst(ring(lane, from, to), reinterpret_cast<void**>(out.data() + count),
                                           static_cast<unsigned>(out.size() - count), nullptr);
    }
    return count;
}

}  // namespace cairn::pmd
