// Parts of a message in the pieces of memory that a work request names.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// Up to kMaxSges pieces, in order.
struct Pieces {
    std::array<std::span<std::uint8_t>, kMaxSges> at{};
    std::uint32_t count = 0;
    bool sendable = false;  // by the port, from where they lie

    [[nodiscard]] std::span<const std::span<std::uint8_t>> all() const noexcept { return {at.data(), count}; }
};

// By whom memory is used, and for what.
struct MemoryAccess {
    const MemoryTable& memory;
    Pd pd{};
    Rights wanted{};
};

// Finds bytes [offset, offset + bytes) of the list's concatenation. False: a piece's key, domain, rights or range does
// not allow it, or the list is too short; `out` is then unspecified. No bytes need no memory at all.
[[nodiscard]] bool find_pieces(const MemoryAccess& access, std::span<const Sge> sges, std::uint64_t offset,
                               std::uint64_t bytes, Pieces& out) noexcept;

// Copies `from` into memory that another thread may be watching: whoever sees its last word sees all of it.
void place(std::uint8_t* to, std::span<const std::uint8_t> from) noexcept;
// The same over pieces, which are as long as `from` together (asserted).
void place(const Pieces& to, std::span<const std::uint8_t> from) noexcept;

}  // namespace cairn::roce
