// Arbitrary numbers in the messages of a peer to an endpoint of copyrpc.
#pragma once

#include <cstring>
#include <span>

#include "rpc/copyrpc/ring_end.hpp"
#include "tests/fuzz/input.hpp"

namespace cairn::copyrpc {

using test::Input;

inline std::int32_t signed_byte(Input& input) {
    return static_cast<std::int8_t>(input.byte());
}

// Returns a part of the place, or memory that may not exist.
inline Place spoil_place(Input& input, Place place) {
    const std::uint8_t which = input.byte();
    const std::uint32_t whole = place.bytes;
    place.bytes = 1U << (which % 13U);
    if ((which & 0xe0U) == 0x20U) {
        place.address += static_cast<std::uint64_t>(std::int64_t{signed_byte(input)} * whole);
    } else if ((which & 0xe0U) == 0x40U) {
        place.rkey.value += static_cast<std::uint32_t>(signed_byte(input));
    } else if ((which & 0xe0U) == 0x60U) {
        place.bytes += static_cast<std::uint32_t>(signed_byte(input));
    }
    return place;
}

inline void spoil_header(std::uint32_t which, std::uint32_t by, std::span<std::uint8_t> batch) {
    RawBatchHeader raw;
    std::memcpy(&raw, batch.data(), sizeof(raw));
    BatchHeader header = BatchHeader::parse(raw).value_or(BatchHeader{});
    const auto short_by = static_cast<std::uint16_t>(by);
    switch (which % 5U) {
        case 0:
            header.sequence += short_by;
            break;
        case 1:
            header.messages += short_by;
            break;
        case 2:
            header.receives += short_by;
            break;
        case 3:
            header.returned += by;
            break;
        default:
            header.granted += by;
    }
    header.emit(raw);
    std::memcpy(batch.data(), &raw, sizeof(raw));
}

inline void spoil_message(std::uint32_t which, std::uint32_t by, std::span<std::uint8_t> batch) {
    RawMessageHeader raw;
    if (batch.size() < kBlockBytes + sizeof(raw)) {
        return;
    }
    std::memcpy(&raw, batch.data() + kBlockBytes, sizeof(raw));
    switch (which % 6U) {
        case 0:
            raw.call.set(raw.call.get() + by);
            break;
        case 1:
            raw.call.set(raw.call.get() ^ 1U << (by % 32U));
            break;
        case 2:
            raw.charge.set(static_cast<std::uint16_t>(raw.charge.get() + by));
            break;
        case 3:
            raw.kind = static_cast<std::uint8_t>(by);
            break;
        case 4:
            raw.flags = static_cast<std::uint8_t>(by);
            break;
        default:
            raw.bytes.set(raw.bytes.get() + by);
    }
    std::memcpy(batch.data() + kBlockBytes, &raw, sizeof(raw));
}

// Changes a number of the batch, of its first message, or of the WRITE.
inline void spoil(Input& input, std::uint8_t what, std::span<std::uint8_t> batch, RingWrite& write) {
    const auto by = static_cast<std::uint32_t>(signed_byte(input));
    switch (what % 5U) {
        case 0:
            return spoil_header(what / 5U, by, batch);
        case 1:
            return spoil_message(what / 5U, by, batch);
        case 2:
            batch[input.byte() % batch.size()] = static_cast<std::uint8_t>(by);
            return;
        case 3:
            write.immediate ^= 1U << (by % 32U);
            return;
        default:
            write.offset += (what & 1U) != 0 ? by : by * kBlockBytes;
            return;
    }
}

}  // namespace cairn::copyrpc
