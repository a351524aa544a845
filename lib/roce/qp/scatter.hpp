// Finds the parts of a message in the pieces of memory that a work request names.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/unset_array.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// Up to kMaxSges pieces, in order.
struct Pieces {
    UnsetArray<std::span<std::uint8_t>, kMaxSges> at;  // the first `count`
    std::uint32_t count = 0;
    bool sendable = false;  // the port can send from them without a copy

    [[nodiscard]] std::span<const std::span<std::uint8_t>> all() const noexcept { return {at.data(), count}; }
};

// The domain that uses memory, and the rights that it needs there.
struct MemoryAccess {
    const MemoryTable& memory;
    Pd pd{};
    Rights wanted{};
};

// Finds bytes [offset, offset + bytes) of the SGEs, one after the other. Returns false if the key, domain, rights or
// range of a piece do not allow it, or the SGEs are too short. `out` is then unspecified. Zero bytes are always found.
[[nodiscard]] bool find_pieces(const MemoryAccess& access, std::span<const Sge> sges, std::uint64_t offset,
                               std::uint64_t bytes, Pieces& out) noexcept;

// Copies `from` into memory that another thread may watch: a thread that sees the last word sees all of it. Returns
// false if the memory, or some of it, is not there any more (UserMemory).
[[nodiscard]] bool place(std::uint8_t* to, std::span<const std::uint8_t> from) noexcept;
// Copies `from` into pieces, whose lengths add up to its own (asserted); otherwise as above.
[[nodiscard]] bool place(const Pieces& to, std::span<const std::uint8_t> from) noexcept;
// Copies all pieces to `to`. Returns false as place().
[[nodiscard]] bool gather(const Pieces& from, std::uint8_t* to) noexcept;

}  // namespace cairn::roce
