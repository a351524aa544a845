// PacketPool: the buffers of a device, which are an rte_mempool and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/mem/region.hpp"
#include "pmd_glue/eal.hpp"

struct rte_mempool;

namespace cairn::pmd {

// The buffers of a device. Without reserved huge pages (--no-huge) EAL's memory is a file in memory, which the kernel
// backs with small pages. The buffers then lie in anonymous memory, which asks for transparent huge pages. EAL does not
// know that memory. It is for drivers whose CPU alone reads and writes buffers, neither for devices with DMA nor for
// peers that map EAL's memory.
class PacketPool {
public:
    struct Shape {
        std::string name;
        std::uint32_t buffers = 0;
        std::uint16_t room_bytes = 0;  // of a frame; headroom comes on top
        int numa_node = 0;
        bool cpu_alone = false;  // see above
    };
    // Makes the pool. Errors: no memory.
    static Result<PacketPool> make(const Shape& shape);
    PacketPool(PacketPool&& other) noexcept
        : pages_(std::move(other.pages_)), pool_(std::exchange(other.pool_, nullptr)) {}
    PacketPool& operator=(PacketPool&&) = delete;
    ~PacketPool();

    [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }
    // Returns a remark on the memory for the operator, to be printed after a number of buffers; mostly empty.
    [[nodiscard]] std::string remark() const { return pages_ ? remark_on(pages_->kind(), pages_->bytes().size()) : ""; }
    [[nodiscard]] static std::string remark_on(mem::PageKind kind, std::size_t bytes);
    [[nodiscard]] mem::PageKind page_kind() const noexcept { return pages_ ? pages_->kind() : eal_pages(); }
    // Returns the pages of the buffers; nullptr if they are EAL's.
    [[nodiscard]] const mem::Region* pages() const noexcept { return pages_ ? &*pages_ : nullptr; }

private:
    explicit PacketPool(std::optional<mem::Region> pages, rte_mempool* pool) noexcept
        : pages_(std::move(pages)), pool_(pool) {}
    static std::optional<PacketPool> make_in_own_pages(const Shape& shape);

    std::optional<mem::Region> pages_;  // ends after the pool
    rte_mempool* pool_;
};

}  // namespace cairn::pmd
