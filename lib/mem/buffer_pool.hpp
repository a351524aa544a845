// BufferPool: buffers of many sizes out of one block of memory. They may be given back in any order, and the memory
// does not stay fragmented.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::mem {

// A buffer lent by a pool. It is a handle, not an owner.
struct Buffer {
    std::uint8_t* data = nullptr;
    std::uint32_t capacity_bytes = 0;

    [[nodiscard]] bool valid() const noexcept { return data != nullptr; }
};

// Size classes are the powers of two from 64 B to 32 MiB (a 16 MiB message and its headers fit). The pool is a buddy
// allocator: a class that runs out splits a block of the next larger class, and two free halves merge again. So memory
// of small buffers serves large ones later.
// Each class keeps a few free blocks unmerged, so that a buffer taken and given back again and again costs a push and a
// pop. Every call has a constant bound (classes x kept blocks). Nothing is allocated after construction. An empty pool
// returns an invalid Buffer; that is no error. Buffers are aligned to 64 B. Belongs to one thread.
class BufferPool {
public:
    static constexpr std::uint32_t kSmallestBytes = 64;
    static constexpr std::uint32_t kClasses = 20;
    static constexpr std::uint32_t kLargestBytes = kSmallestBytes << (kClasses - 1);

    // Makes a pool. `region` outlives the pool, is aligned to 64 B (asserted), and has at most 256 GiB. A rest below 64
    // B is not used.
    explicit BufferPool(std::span<std::uint8_t> region);

    // Returns a buffer of at least `bytes`; an invalid one if none is free or `bytes` exceeds kLargestBytes.
    [[nodiscard]] Buffer try_allocate(std::size_t bytes) noexcept;
    // Gives a buffer of this pool back. Ignores an invalid one. A buffer is not given back twice (asserted).
    void release(Buffer buffer) noexcept;

    [[nodiscard]] std::uint64_t live_buffers() const noexcept { return live_buffers_; }
    [[nodiscard]] std::uint64_t live_bytes() const noexcept { return live_bytes_; }  // by capacity
    [[nodiscard]] std::uint64_t capacity_bytes() const noexcept {
        return static_cast<std::uint64_t>(tags_.size()) * kSmallestBytes;
    }

    // Walks all blocks. Asserts that they tile the region and that lists and sums agree. For tests.
    void check_invariants() const noexcept;

private:
    // A block's name is the number of its first 64-byte unit. One byte per unit describes the block that begins there.
    using Unit = std::uint32_t;
    using Tag = std::uint8_t;
    static constexpr Unit kNone = ~Unit{0};
    static constexpr Tag kInside = 0xff;       // no block begins here
    static constexpr Tag kFreeFlag = 0x80;     // merged with its buddy as soon as that is free
    static constexpr Tag kKeptFlag = 0x40;     // free but kept back for the next allocation of its class
    static constexpr Tag kClassMask = 0x1f;    // without a flag: lent
    static constexpr std::uint32_t kKept = 8;  // free blocks each class keeps unmerged

    struct Links {  // lies in a free block's first bytes
        Unit previous;
        Unit next;
    };
    struct KeptBlocks {
        std::array<Unit, kKept> units{};
        std::uint32_t count = 0;
    };

    [[nodiscard]] std::uint8_t* address(Unit unit) const noexcept;
    [[nodiscard]] Links links(Unit unit) const noexcept;
    void set_links(Unit unit, Links links) noexcept;
    void push_free(Unit unit, std::uint32_t size_class) noexcept;
    void unlink_free(Unit unit, std::uint32_t size_class) noexcept;
    [[nodiscard]] Unit take_split(std::uint32_t size_class) noexcept;
    void give_merged(Unit unit, std::uint32_t size_class) noexcept;
    bool merge_kept() noexcept;
    [[nodiscard]] Buffer lend(Unit unit, std::uint32_t size_class) noexcept;

    std::span<std::uint8_t> region_;
    std::vector<Tag> tags_;              // one for each unit
    std::array<Unit, kClasses> free_{};  // heads of doubly linked lists
    std::array<KeptBlocks, kClasses> kept_{};
    std::uint64_t live_buffers_ = 0;
    std::uint64_t live_bytes_ = 0;
};

}  // namespace cairn::mem
