// Chains of indices by hash value. The owner knows which element has which index, and compares the elements.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "lib/base/assert.hpp"

namespace cairn::port {

// The capacity is fixed and allocated at construction.
class HashChains {
public:
    static constexpr std::uint32_t kEnd = 0xffffffffU;

    explicit HashChains(std::uint32_t capacity)
        : heads_(std::bit_ceil(std::size_t{capacity}), kEnd), next_(capacity, kEnd) {}

    // first() returns the first index in the chain of a hash. next() returns the index after `index` in its chain. Both
    // return kEnd if there is none.
    [[nodiscard]] std::uint32_t first(std::uint32_t hash) const noexcept { return heads_[hash & (heads_.size() - 1)]; }
    [[nodiscard]] std::uint32_t next(std::uint32_t index) const noexcept { return next_[index]; }

    // Returns the length of the longest chain. Walks all chains.
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
