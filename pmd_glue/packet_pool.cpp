#include "pmd_glue/packet_pool.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

namespace cairn::pmd {

namespace {

constexpr std::uint16_t kCacheBuffers = 256;  // of each lcore

constexpr std::uint16_t with_headroom(std::uint16_t room_bytes) noexcept {
    return static_cast<std::uint16_t>(room_bytes + RTE_PKTMBUF_HEADROOM);
}

// Makes a pool of packet buffers that has no memory yet. Returns nullptr if EAL has none for its bookkeeping.
rte_mempool* make_empty(const PacketPool::Shape& shape) {
    rte_pktmbuf_pool_private layout{};
    layout.mbuf_data_room_size = with_headroom(shape.room_bytes);
    const auto element_bytes = static_cast<unsigned>(sizeof(rte_mbuf) + layout.mbuf_data_room_size);
    // Buffers may lie across pages: no device reads them.
    rte_mempool* const pool = rte_mempool_create_empty(shape.name.c_str(), shape.buffers, element_bytes, kCacheBuffers,
                                                       sizeof(layout), shape.numa_node, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
    if (pool == nullptr) {
        return nullptr;
    }
    if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) != 0) {
        rte_mempool_free(pool);
        return nullptr;
    }
    rte_pktmbuf_pool_init(pool, &layout);
    return pool;
}

Result<mem::Region> map_for(const rte_mempool& pool) {
    std::size_t smallest_chunk = 0;
    std::size_t alignment = 0;
    const auto bytes = rte_mempool_op_calc_mem_size_default(&pool, pool.size, 0, &smallest_chunk, &alignment);
    return mem::Region::map(bytes > 0 ? static_cast<std::size_t>(bytes) : 0, mem::PageWish::NoHuge);
}

// Places the buffers in the memory. Returns false if not all of them fit.
bool populate(rte_mempool& pool, std::span<std::uint8_t> memory) {
    auto* const start = reinterpret_cast<char*>(memory.data());
    const auto iova = rte_eal_iova_mode() == RTE_IOVA_VA ? reinterpret_cast<rte_iova_t>(start) : RTE_BAD_IOVA;
    const int placed = rte_mempool_populate_iova(&pool, start, iova, memory.size(), nullptr, nullptr);
    if (placed < 0 || static_cast<std::uint32_t>(placed) != pool.size) {
        return false;
    }
    rte_mempool_obj_iter(&pool, rte_pktmbuf_init, nullptr);
    return true;
}

}  // namespace

std::optional<PacketPool> PacketPool::make_in_own_pages(const Shape& shape) {
    rte_mempool* const pool = make_empty(shape);
    if (pool == nullptr) {
        return std::nullopt;
    }
    PacketPool made(std::nullopt, pool);
    Result<mem::Region> pages = map_for(*pool);
    if (!pages.ok()) {
        return std::nullopt;
    }
    made.pages_ = std::move(pages).value();
    return populate(*pool, made.pages_->bytes()) ? std::optional(std::move(made)) : std::nullopt;
}

Result<PacketPool> PacketPool::make(const Shape& shape) {
    if (shape.cpu_alone && rte_eal_has_hugepages() == 0) {
        if (std::optional<PacketPool> made = make_in_own_pages(shape)) {
            return *std::move(made);
        }
    }
    rte_mempool* const pool = rte_pktmbuf_pool_create(shape.name.c_str(), shape.buffers, kCacheBuffers, 0,
                                                      with_headroom(shape.room_bytes), shape.numa_node);
    if (pool == nullptr) {
        return Error{fmt::format("no memory for {} buffers of {} bytes", shape.buffers, shape.room_bytes),
                     "raise -m, reserve more huge pages, or lower --buffers"};
    }
    return PacketPool(std::nullopt, pool);
}

std::string PacketPool::remark_on(mem::PageKind kind, std::size_t bytes) {
    return kind == mem::PageKind::Plain && bytes >= mem::kHugePageBytes
               ? " on small pages (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled for large ones)"
               : "";
}

PacketPool::~PacketPool() {
    rte_mempool_free(pool_);
}

}  // namespace cairn::pmd
