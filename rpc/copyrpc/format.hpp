// What stands in a ring: batches, and the messages behind their headers. All numbers are big-endian.
//
//     block 0          batch header
//     block 1 ...      message: header, extension if flagged, payload; the next message begins with a block
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

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
    std::uint16_t receives = 0;  // receive requests that the sender posted since its last batch
    std::uint32_t returned = 0;  // blocks of the sender's own ring that are free again
    std::uint32_t granted = 0;   // blocks promised for answers to the receiver's requests

    // Returns nothing for another version.
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

struct RawMessageHeader {
    Be32 call;  // bit 31: an answer
    Be16 charge;
    std::uint8_t kind;
    std::uint8_t flags;
    Be32 bytes;
};
static_assert(sizeof(RawMessageHeader) == 12 && alignof(RawMessageHeader) == 1);

struct RawExtension {
    Be64 trace;
    Be32 left_us;
    Be32 reserved;
};
static_assert(sizeof(RawExtension) == 16 && alignof(RawExtension) == 1);

// How a request ended at its server.
enum class Outcome : std::uint8_t { Answered, NoHandler, Refused, Expired, TooLong, Count };

// What few requests have.
struct Extension {
    std::uint64_t trace = 0;    // of the caller's; 0: none
    std::uint32_t left_us = 0;  // until the caller's deadline, when the request was posted; 0: none

    friend bool operator==(const Extension&, const Extension&) noexcept = default;
};

struct Message {
    static constexpr std::uint32_t kAnswer = 1U << 31U;  // of `call` on the wire
    static constexpr std::uint8_t kExtended = 1;         // of the flags

    bool answer = false;
    std::uint32_t call = 0;    // the caller's number of it, 31 bits
    std::uint16_t charge = 0;  // request: blocks of the promise that its answer may take, its batch's header included
    std::uint8_t type = 0;     // request
    Outcome outcome{};         // answer
    std::optional<Extension> extension{};
    std::span<const std::uint8_t> payload{};

    // The length of a message in the ring.
    [[nodiscard]] static constexpr std::uint32_t blocks_of(std::uint32_t payload_bytes, bool extended) noexcept {
        const std::uint32_t header =
            std::uint32_t{sizeof(RawMessageHeader)} + (extended ? std::uint32_t{sizeof(RawExtension)} : 0U);
        return blocks_for(header + payload_bytes);
    }
    [[nodiscard]] std::uint32_t blocks() const noexcept {
        return blocks_of(static_cast<std::uint32_t>(payload.size()), extension.has_value());
    }
    // What a request pays for an answer of so many bytes: the message, and the header of its batch.
    [[nodiscard]] static constexpr std::uint32_t charge_for(std::uint32_t answer_bytes) noexcept {
        return blocks_of(answer_bytes, false) + 1;
    }
    // The longest answer that has room in a charge.
    [[nodiscard]] static constexpr std::uint32_t answer_max(std::uint32_t charge) noexcept {
        return (charge - 1) * kBlockBytes - std::uint32_t{sizeof(RawMessageHeader)};
    }

    // Reads the message that `room` begins with. The payload lies there. Returns nothing if it is none, or longer than
    // the room.
    [[nodiscard]] static std::optional<Message> parse(std::span<const std::uint8_t> room) noexcept;
    // Writes all but the payload to the front of `room`, which holds the whole message. Returns where the payload
    // belongs.
    std::span<std::uint8_t> emit(std::span<std::uint8_t> room) const noexcept;
};

// mutants: copyrpc-message-parse
inline std::optional<Message> Message::parse(std::span<const std::uint8_t> room) noexcept {
    RawMessageHeader raw;
    if (room.size() < sizeof(raw)) {
        return std::nullopt;
    }
    std::memcpy(&raw, room.data(), sizeof(raw));
    room = room.subspan(sizeof(raw));
    Message message;
    message.answer = (raw.call.get() & kAnswer) != 0;
    message.call = raw.call.get() & ~kAnswer;
    message.charge = raw.charge.get();
    if (message.answer) {
        if (raw.kind >= static_cast<std::uint8_t>(Outcome::Count) || raw.flags != 0) {
            return std::nullopt;
        }
        message.outcome = static_cast<Outcome>(raw.kind);
    } else {
        message.type = raw.kind;
        if ((raw.flags & ~kExtended) != 0) {
            return std::nullopt;
        }
    }
    if ((raw.flags & kExtended) != 0) {
        RawExtension extension;
        if (room.size() < sizeof(extension)) {
            return std::nullopt;
        }
        std::memcpy(&extension, room.data(), sizeof(extension));
        room = room.subspan(sizeof(extension));
        message.extension = Extension{extension.trace.get(), extension.left_us.get()};
    }
    if (raw.bytes.get() > room.size()) {
        return std::nullopt;
    }
    message.payload = room.first(raw.bytes.get());
    return message;
}

// mutants: copyrpc-message-emit
inline std::span<std::uint8_t> Message::emit(std::span<std::uint8_t> room) const noexcept {
    RawMessageHeader raw{};
    raw.call.set(call | (answer ? kAnswer : 0U));
    raw.charge.set(charge);
    raw.kind = answer ? static_cast<std::uint8_t>(outcome) : type;
    raw.flags = extension ? kExtended : 0;
    raw.bytes.set(static_cast<std::uint32_t>(payload.size()));
    std::memcpy(room.data(), &raw, sizeof(raw));
    room = room.subspan(sizeof(raw));
    if (extension) {
        const RawExtension more{Be64{extension->trace}, Be32{extension->left_us}, Be32{0}};
        std::memcpy(room.data(), &more, sizeof(more));
        room = room.subspan(sizeof(more));
    }
    return room.first(payload.size());
}

}  // namespace cairn::copyrpc
