// Ids of the objects in a store.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace cairn::fs {

// The id of a file, for good. It depends neither on its name nor on the name's place. `place` has the slot of the
// file's home in its upper 16 bits, and a serial number of that slot. `random` cannot be guessed.
struct FileId {
    std::uint64_t place = 0;
    std::uint64_t random = 0;

    [[nodiscard]] constexpr std::uint16_t home_slot() const noexcept {
        return static_cast<std::uint16_t>(place >> 48U);
    }
    [[nodiscard]] constexpr std::uint64_t serial() const noexcept { return place & 0xffffffffffffU; }
    friend constexpr auto operator<=>(const FileId&, const FileId&) noexcept = default;
};

// A part of a file's data. All chunks have the same length; the last one of a file holds fewer bytes.
struct ChunkId {
    FileId file{};
    std::uint32_t index = 0;

    friend constexpr auto operator<=>(const ChunkId&, const ChunkId&) noexcept = default;
};

// The last call in one of a client's slots. A retry finds its answer by it.
struct AnswerId {
    std::uint64_t client = 0;
    std::uint32_t slot = 0;

    friend constexpr auto operator<=>(const AnswerId&, const AnswerId&) noexcept = default;
};

// A cheap hash is enough: ids have enough randomness, or other parties cannot choose them.
struct IdHash {
    static constexpr std::size_t mix(std::uint64_t value) noexcept {
        value *= 0x9e3779b97f4a7c15U;
        return static_cast<std::size_t>(value ^ (value >> 32U));
    }
    std::size_t operator()(const FileId& id) const noexcept { return mix(id.place ^ id.random); }
    std::size_t operator()(const ChunkId& id) const noexcept { return mix((*this)(id.file) + id.index); }
    std::size_t operator()(const AnswerId& id) const noexcept {
        return mix(id.client + (std::uint64_t{id.slot} << 48U));
    }
    std::size_t operator()(std::uint64_t number) const noexcept { return mix(number); }
};

}  // namespace cairn::fs
