// A message in a ring: its header, the parts that flags announce, its payload. All numbers are big-endian. A message
// that is too long for the ring lies in memory of its caller: the server READs requests there, and WRITEs answers.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/endian.hpp"
#include "rpc/copyrpc/place.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

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

// The outcome of a request at its server.
enum class Outcome : std::uint8_t { Answered, NoHandler, Refused, Expired, TooLong, Declined, Count };

static_assert(sizeof(RawPlace) == sizeof(RawExtension));

// Fields that only some requests have.
struct Extension {
    std::uint64_t trace = 0;    // the caller's trace; 0: none
    std::uint32_t left_us = 0;  // time until the caller's deadline, counted when the request was posted; 0: none

    friend bool operator==(const Extension&, const Extension&) noexcept = default;
};

struct Message {
    static constexpr std::uint32_t kAnswer = 1U << 31U;  // in `call` on the wire
    static constexpr std::uint8_t kExtended = 1;         // flag of a request: it has an extension
    static constexpr std::uint8_t kElsewhere = 2;        // flag of a request: it has a place instead of a payload
    static constexpr std::uint8_t kHasRoom = 4;          // flag of a request: it has a place for its answer
    static constexpr std::uint8_t kWritten = 8;          // flag of an answer: it was written to that place

    bool answer = false;
    std::uint32_t call = 0;    // the caller's number of the call, 31 bits
    std::uint16_t charge = 0;  // request: blocks promised for its answer and the answer's batch header
    std::uint8_t type = 0;     // request
    Outcome outcome{};         // answer
    std::optional<Extension> extension{};
    std::optional<Place> elsewhere{};  // request: the place of its payload
    std::optional<Place> room{};       // request: the place for an answer that is too long for the ring
    std::uint32_t written = 0;         // answer: how many of its bytes were written to that room
    std::span<const std::uint8_t> payload{};

    // Returns the length of a message in the ring. `extras`: how many of extension and places it has.
    [[nodiscard]] static constexpr std::uint32_t blocks_of(std::uint32_t payload_bytes, std::uint32_t extras) noexcept {
        const auto header =
            static_cast<std::uint32_t>(sizeof(RawMessageHeader) + std::size_t{extras} * sizeof(RawExtension));
        return blocks_for(header + payload_bytes);
    }
    [[nodiscard]] std::uint32_t blocks() const noexcept {
        return blocks_of(static_cast<std::uint32_t>(payload.size()),
                         (extension ? 1U : 0U) + (elsewhere ? 1U : 0U) + (room ? 1U : 0U));
    }
    // Returns the charge of an answer of `answer_bytes`: the message, and the header of its batch.
    [[nodiscard]] static constexpr std::uint32_t charge_for(std::uint32_t answer_bytes) noexcept {
        return blocks_of(answer_bytes, 0) + 1;
    }
    // Returns the longest answer that fits into a charge.
    [[nodiscard]] static constexpr std::uint32_t answer_max(std::uint32_t charge) noexcept {
        return (charge - 1) * kBlockBytes - std::uint32_t{sizeof(RawMessageHeader)};
    }

    // Parses the message at the beginning of `room`. Its payload refers to `room`. Returns nothing if there is no valid
    // message, or it is longer than the room.
    [[nodiscard]] static std::optional<Message> parse(std::span<const std::uint8_t> room) noexcept {
        Message message;
        return message.read(room) ? std::optional(message) : std::nullopt;
    }
    // As parse(), into this object. If it returns false, the message must be read again before it is used.
    [[nodiscard]] bool read(std::span<const std::uint8_t> bytes) noexcept;
    // Writes all but the payload to the front of `room`, which holds the whole message. Returns the payload's place.
    std::span<std::uint8_t> emit(std::span<std::uint8_t> into) const noexcept;

private:
    // Takes a value from the front of `room`. Returns false if there are too few bytes.
    template <class Raw>
    static bool take(std::span<const std::uint8_t>& room, Raw& raw) noexcept {
        if (room.size() < sizeof(raw)) {
            return false;
        }
        std::memcpy(&raw, room.data(), sizeof(raw));
        room = room.subspan(sizeof(raw));
        return true;
    }
    template <class Raw>
    static void put(std::span<std::uint8_t>& into, const Raw& raw) noexcept {
        std::memcpy(into.data(), &raw, sizeof(raw));
        into = into.subspan(sizeof(raw));
    }
    static bool take_place(std::span<const std::uint8_t>& room, std::optional<Place>& place) noexcept {
        RawPlace raw;
        const bool there = take(room, raw);
        place = there ? std::optional(Place::of(raw)) : std::nullopt;
        return there;
    }
    [[nodiscard]] bool parse_extras(std::uint8_t flags, std::span<const std::uint8_t>& rest) noexcept;
};

// Parses the parts that the flags announce.
inline bool Message::parse_extras(std::uint8_t flags, std::span<const std::uint8_t>& rest) noexcept {
    if ((flags & kExtended) != 0) {
        RawExtension raw;
        if (!take(rest, raw)) {
            return false;
        }
        extension = Extension{raw.trace.get(), raw.left_us.get()};
    }
    return ((flags & kElsewhere) == 0 || take_place(rest, elsewhere)) &&
           ((flags & kHasRoom) == 0 || take_place(rest, room));
}

inline bool Message::read(std::span<const std::uint8_t> bytes) noexcept {
    RawMessageHeader raw;
    if (!take(bytes, raw)) {
        return false;
    }
    answer = (raw.call.get() & kAnswer) != 0;
    call = raw.call.get() & ~kAnswer;
    charge = raw.charge.get();
    extension.reset();
    elsewhere.reset();
    room.reset();
    written = 0;
    payload = {};
    if (answer) {
        if (raw.kind >= static_cast<std::uint8_t>(Outcome::Count) || (raw.flags & ~kWritten) != 0) {
            return false;
        }
        outcome = static_cast<Outcome>(raw.kind);
        if (raw.flags != 0) {
            written = raw.bytes.get();
            return true;
        }
    } else {
        type = raw.kind;
        if ((raw.flags & ~(kExtended | kElsewhere | kHasRoom)) != 0 ||
            (raw.flags != 0 && !parse_extras(raw.flags, bytes))) {
            return false;
        }
    }
    if (raw.bytes.get() > bytes.size() || (elsewhere && raw.bytes.get() != 0)) {
        return false;
    }
    payload = bytes.first(raw.bytes.get());
    return true;
}

inline std::span<std::uint8_t> Message::emit(std::span<std::uint8_t> into) const noexcept {
    RawMessageHeader raw{};
    raw.call.set(call | (answer ? kAnswer : 0U));
    raw.charge.set(charge);
    raw.kind = answer ? static_cast<std::uint8_t>(outcome) : type;
    raw.flags = static_cast<std::uint8_t>((extension ? kExtended : 0) | (elsewhere ? kElsewhere : 0) |
                                          (room ? kHasRoom : 0) | (written != 0 ? kWritten : 0));
    raw.bytes.set(written != 0 ? written : static_cast<std::uint32_t>(payload.size()));
    put(into, raw);
    if (extension) {
        put(into, RawExtension{Be64{extension->trace}, Be32{extension->left_us}, Be32{0}});
    }
    if (elsewhere) {
        put(into, elsewhere->raw());
    }
    if (room) {
        put(into, room->raw());
    }
    return into.first(payload.size());
}

}  // namespace cairn::copyrpc
