// Copies and clears short messages without a function call. Most messages are a few words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn {

// Behaves as memcpy. Up to 64 bytes go as overlapping moves of a fixed size, which compilers turn into plain loads and
// stores.
inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::size_t count) noexcept {
    const auto ends = [to, from, count]<std::size_t kBytes>() noexcept {
        struct Piece {
            std::uint8_t bytes[kBytes];
        };
        Piece first;
        Piece last;
        std::memcpy(&first, from, kBytes);
        std::memcpy(&last, from + count - kBytes, kBytes);
        std::memcpy(to, &first, kBytes);
        std::memcpy(to + count - kBytes, &last, kBytes);
    };
    if (count >= 16 && count <= 32) {
        ends.template operator()<16>();
    } else if (count > 32 && count <= 64) {
        ends.template operator()<32>();
    } else if (count > 64) {
        std::memcpy(to, from, count);
    } else if (count >= 8) {
        ends.template operator()<8>();
    } else if (count >= 4) {
        ends.template operator()<4>();
    } else if (count >= 2) {
        ends.template operator()<2>();
    } else if (count == 1) {
        *to = *from;
    }
}

// Sets `count` bytes to 0. Behaves as memset, by the method of copy_bytes().
inline void clear_bytes(std::uint8_t* at, std::size_t count) noexcept {
    const auto ends = [at, count]<std::size_t kBytes>() noexcept {
        std::memset(at, 0, kBytes);
        std::memset(at + count - kBytes, 0, kBytes);
    };
    if (count >= 16 && count <= 32) {
        ends.template operator()<16>();
    } else if (count > 32 && count <= 64) {
        ends.template operator()<32>();
    } else if (count > 64) {
        std::memset(at, 0, count);
    } else if (count >= 8) {
        ends.template operator()<8>();
    } else if (count >= 4) {
        ends.template operator()<4>();
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            at[i] = 0;
        }
    }
}

}  // namespace cairn
