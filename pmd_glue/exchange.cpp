#include "pmd_glue/exchange.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <utility>

namespace cairn::pmd {

namespace {

constexpr unsigned kLaneFrames = 1024;

// Returns nullptr if there is no memory.
rte_ring* make_ring(std::uint16_t port_id, int lane, std::uint16_t from, std::uint16_t to) {
    const auto name = fmt::format("cairn_{}_{}_{}_{}", port_id, lane, from, to);
    return rte_ring_create(name.c_str(), kLaneFrames, static_cast<int>(rte_socket_id()), RING_F_SP_ENQ | RING_F_SC_DEQ);
}

}  // namespace

Exchange::Exchange(std::uint16_t workers)
    : workers_(workers), owners_(workers), rings_(std::size_t{2} * workers * workers, nullptr), groups_(workers) {}

Exchange::Exchange(Exchange&& other) noexcept
    : workers_(other.workers_),
      owners_(other.owners_),
      rings_(std::exchange(other.rings_, {})),
      groups_(std::exchange(other.groups_, {})) {}

Result<Exchange> Exchange::make(std::uint16_t port_id, std::uint16_t workers) {
    Exchange exchange(workers);
    bool complete = true;
    for (const Lane lane : {Lane::Received, Lane::ToSend}) {
        for (std::uint16_t from = 0; from < workers; ++from) {
            for (std::uint16_t to = 0; to < workers; ++to) {
                rte_ring*& between = exchange.ring(lane, from, to);
                between = from == to ? nullptr : make_ring(port_id, static_cast<int>(lane), from, to);
                complete = complete && (from == to || between != nullptr);
            }
        }
    }
    if (!complete) {
        return Error{fmt::format("no memory for the rings between {} workers: {}", workers, rte_strerror(rte_errno)),
                     "raise -m, or use fewer lcores"};
    }
    return exchange;
}

Exchange::~Exchange() {
    for (rte_ring* each : rings_) {
        void* frame = nullptr;
        while (each != nullptr && rte_ring_sc_dequeue(each, &frame) == 0) {
            rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
        }
        rte_ring_free(each);
    }
}

bool Exchange::pass(Lane lane, std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept {
    return rte_ring_sp_enqueue(ring(lane, from, to), frame) == 0;
}

// mutants: pmd-exchange-pass-copy
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
