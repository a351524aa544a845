// The greeting of each end when it connects: the place of its ring, which the other end writes to.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

struct RawHello {
    Be32 magic;
    std::uint8_t version;
    std::uint8_t ring_log2;
    Be16 receives;
    Be64 address;
    Be32 rkey;
    Be32 longest;
    std::uint8_t flow;
    std::uint8_t mirror_log2;
    std::array<std::uint8_t, 2> spare;
    Be32 word;
};
static_assert(sizeof(RawHello) == 32 && alignof(RawHello) == 1);

// The private data of REQ and REP, from either end.
struct Hello {
    static constexpr std::uint32_t kMagic = 0x43525043;  // "CRPC"
    static constexpr std::uint8_t kVersion = 3;
    static constexpr std::uint16_t kLeastReceives = 4;
    static constexpr std::uint16_t kMostReceives = 4096;

    std::uint32_t ring_bytes = 0;  // a power of two from RingShape::kLeastBytes to kMostBytes
    std::uint16_t receives = 0;    // receive requests for this connection
    std::uint64_t address = 0;     // of its ring
    Rkey rkey{};
    std::uint32_t longest = 0;  // bytes of the longest request that it READs by itself; 0: none
    Flow flow = Flow::Credit;
    Rkey word{};                                         // key of its consumer word, with Flow::Read
    std::uint32_t mirror_bytes = RingShape::kMostBytes;  // how much of its peer's ring it writes to, at most

    [[nodiscard]] static constexpr bool is_valid_ring(std::uint32_t bytes) noexcept {
        return std::has_single_bit(bytes) && bytes >= RingShape::kLeastBytes && bytes <= RingShape::kMostBytes;
    }
    // Parses a greeting. Returns nothing if the bytes are no greeting of this version, or a number is out of range.
    [[nodiscard]] static std::optional<Hello> parse(std::span<const std::uint8_t> private_data) noexcept;
    void emit(RawHello& raw) const noexcept {
        raw = {Be32{kMagic},
               kVersion,
               static_cast<std::uint8_t>(std::countr_zero(ring_bytes)),
               Be16{receives},
               Be64{address},
               Be32{rkey.value},
               Be32{longest},
               static_cast<std::uint8_t>(flow),
               static_cast<std::uint8_t>(std::countr_zero(mirror_bytes)),
               {},
               Be32{word.value}};
    }

    friend bool operator==(const Hello&, const Hello&) noexcept = default;
};

inline std::optional<Hello> Hello::parse(std::span<const std::uint8_t> private_data) noexcept {
    RawHello raw;
    if (private_data.size() < sizeof(raw)) {
        return std::nullopt;
    }
    std::memcpy(&raw, private_data.data(), sizeof(raw));
    if (raw.magic.get() != kMagic || raw.version != kVersion || raw.ring_log2 >= 32 || raw.mirror_log2 >= 32 ||
        raw.flow >= static_cast<std::uint8_t>(Flow::Count)) {
        return std::nullopt;
    }
    const Hello hello{1U << raw.ring_log2, raw.receives.get(),          raw.address.get(),    Rkey{raw.rkey.get()},
                      raw.longest.get(),   static_cast<Flow>(raw.flow), Rkey{raw.word.get()}, 1U << raw.mirror_log2};
    if (!is_valid_ring(hello.ring_bytes) || !is_valid_ring(hello.mirror_bytes) || hello.receives < kLeastReceives ||
        hello.receives > kMostReceives) {
        return std::nullopt;
    }
    return hello;
}

}  // namespace cairn::copyrpc
