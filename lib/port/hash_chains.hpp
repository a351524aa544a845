// Indices in chains by hash value; which element has which index, and whether it is the one, the owner knows.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "lib/base/assert.hpp"

namespace cairn::port {

// Fixed capacity, allocated at construction.
class HashChains {
public:
    static constexpr std::uint32_t kEnd = 0xffffffffU;

    explicit HashChains(std::uint32_t capacity)
        : heads_(std::bit_ceil(std::size_t{capacity}), kEnd), next_(capacity, kEnd) {}

    // The first index of a hash's chain, and the one behind an index; kEnd when there is none.
    [[nodiscard]] std::uint32_t first(std::uint32_t hash) const noexcept { return heads_[hash & (heads_.size() - 1)]; }
    [[nodiscard]] std::uint32_t next(std::uint32_t index) const noexcept { return next_[index]; }

    // Of the longest chain. Walks all.
    [[nodiscard]] std::uint32_t longest() const noexcept {
        std::uint32_t most = 0;
        for (std::uint32_t at : heads_) {
            std::uint32_t length = 0;
            for (; at != kEnd; at = next_[at]) {
                ++length;
            }
            most = length > most ? length : most;
        }
        return most;
    }

    void link(std::uint32_t hash, std::uint32_t index) noexcept {
        std::uint32_t& head = heads_[hash & (heads_.size() - 1)];
        next_[index] = head;
        head = index;
    }
    void unlink(std::uint32_t hash, std::uint32_t index) noexcept {
        std::uint32_t* at = &heads_[hash & (heads_.size() - 1)];
        while (*at != index) {
            CAIRN_ASSERT(*at != kEnd);
            at = &next_[*at];
        }
        *at = next_[index];
    }

private:
    std::vector<std::uint32_t> heads_;  // by hash
    std::vector<std::uint32_t> next_;   // by index
};

}  // namespace cairn::port
