// The content of a ring: batches, each with a header and messages. All numbers are big-endian.
//
//     block 0          batch header
//     block 1 ...      message; the next message begins with a block
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lib/base/endian.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

struct RawBatchHeader {
    std::uint8_t version;
    std::uint8_t reserved;
    Be16 sequence;
    Be16 messages;
    Be16 receives;
    Be32 returned;
    Be32 granted;
    std::array<std::uint8_t, 16> spare;
};
static_assert(sizeof(RawBatchHeader) == kBlockBytes && alignof(RawBatchHeader) == 1);

struct BatchHeader {
    static constexpr std::uint8_t kVersion = 1;

    std::uint16_t sequence = 0;  // counts the batches of a direction, modulo 2^16
    std::uint16_t messages = 0;
    std::uint16_t receives = 0;  // posted by the sender since its last batch
    std::uint32_t returned = 0;  // blocks of the sender's own ring that are free again
    std::uint32_t granted = 0;   // blocks promised for answers to the receiver's requests

    // Parses a header. Returns nothing for another version.
    [[nodiscard]] static std::optional<BatchHeader> parse(const RawBatchHeader& raw) noexcept {
        if (raw.version != kVersion) {
            return std::nullopt;
        }
        return BatchHeader{raw.sequence.get(), raw.messages.get(), raw.receives.get(), raw.returned.get(),
                           raw.granted.get()};
    }
    void emit(RawBatchHeader& raw) const noexcept {
        raw = {kVersion, 0, Be16{sequence}, Be16{messages}, Be16{receives}, Be32{returned}, Be32{granted}, {}};
    }

    friend bool operator==(const BatchHeader&, const BatchHeader&) noexcept = default;
};

}  // namespace cairn::copyrpc
