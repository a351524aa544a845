// Blocks: the places of messages. A session has one block for requests, and one for answers, per call that may be under
// way. The call of sequence number s has block s modulo their number.
//
//     | ... unused ... | payload | grant, if flagged | trailer |  end of the block
//
// The last word of the trailer shows that the message is complete: a WRITE stores its bytes in order (ScaleRPC 3.1).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"

namespace cairn::scalerpc {

struct RawTrailer {
    Be32 sequence;
    std::uint8_t kind;
    std::uint8_t flags;
    Be16 reserved;
    Be32 first;
    Be32 second;
    Be32 bytes;
    Be32 valid;
};
static_assert(sizeof(RawTrailer) == 24 && alignof(RawTrailer) == 1);

struct RawGrant {
    Be64 address;
    Be32 rkey;
};
static_assert(sizeof(RawGrant) == 12 && alignof(RawGrant) == 1);

constexpr std::uint32_t kBlockOverhead = sizeof(RawTrailer) + sizeof(RawGrant);

// The shape of a session's blocks. Both ends of a connection have the same shape.
struct BlockShape {
    static constexpr std::uint32_t kLeastBytes = 64;
    static constexpr std::uint32_t kMostBytes = 64U << 10U;
    static constexpr std::uint32_t kMostBlocks = 64;

    std::uint32_t bytes = 4096;  // of one block, a power of two
    std::uint32_t blocks = 8;    // of one session, a power of two

    [[nodiscard]] constexpr bool is_valid() const noexcept {
        return std::has_single_bit(bytes) && bytes >= kLeastBytes && bytes <= kMostBytes &&
               std::has_single_bit(blocks) && blocks <= kMostBlocks;
    }
    [[nodiscard]] constexpr std::uint32_t session_bytes() const noexcept { return bytes * blocks; }
    [[nodiscard]] constexpr std::uint32_t message_max() const noexcept { return bytes - kBlockOverhead; }
    [[nodiscard]] constexpr std::uint32_t index_of(std::uint32_t sequence) const noexcept {
        return sequence & (blocks - 1);
    }
    // Returns the end of the block of `sequence`, counted from the session's first block.
    [[nodiscard]] constexpr std::uint32_t end_of(std::uint32_t sequence) const noexcept {
        return (index_of(sequence) + 1) * bytes;
    }

    friend constexpr bool operator==(const BlockShape&, const BlockShape&) noexcept = default;
};

// The right to WRITE requests into the server's pool, until the notice of the same epoch.
struct Grant {
    std::uint64_t address = 0;  // of the session's first block in the pool
    Rkey rkey{};
};

// News of a server for a client. A grant and a notice name the slice by its epoch, the number of the session's slices.
// The welcome comes once; its grant is for the client's entry.
struct News {
    enum class Kind : std::uint8_t { None, Welcome, Grant, Notice };
    Kind kind = Kind::None;
    std::uint32_t epoch = 0;
    // A notice: the first request that the server has not taken. A grant: the first that it has not READ; the client
    // writes from this one on.
    std::uint32_t accepted = 0;
    Grant grant{};
};

// The outcome of a request at its server.
enum class Outcome : std::uint8_t { Answered, NoHandler, Refused, Expired, TooLong, Declined, Count };

struct Request {
    std::uint32_t sequence = 0;
    std::uint8_t type = 0;
    std::uint32_t left_us = 0;  // time until the caller's deadline; 0: none
    std::span<const std::uint8_t> payload{};
    bool given_up = false;  // the call has ended, so the request must not be executed
};

struct Answer {
    std::uint32_t sequence = 0;
    Outcome outcome{};
    News news{};
    std::span<const std::uint8_t> payload{};
};

// The epoch in a block: that of the slice for which it was written, or one of these.
constexpr std::uint32_t kStaged = 0;  // a request that is staged at the client
constexpr std::uint32_t kAnswer = 0xffffffffU;

// Returns the word that makes a block valid. Blocks of earlier slices and calls have other words.
[[nodiscard]] constexpr std::uint32_t valid_word(std::uint32_t epoch, std::uint32_t sequence) noexcept {
    return epoch * 0x9e3779b1U + sequence * 2 + 1;
}
// True if the block that ends at `end` seems to have a message. The rest of the trailer decides.
[[nodiscard]] inline bool looks_valid(const std::uint8_t* end, std::uint32_t epoch, std::uint32_t sequence) noexcept {
    Be32 valid;
    std::memcpy(&valid, end - sizeof(valid), sizeof(valid));
    return valid.get() == valid_word(epoch, sequence);
}

// Writes a request into the end of its block. Returns how many bytes before the end it begins. The payload fits
// (asserted).
std::uint32_t put_request(const Request& request, std::uint32_t epoch, std::span<std::uint8_t> block) noexcept;
// As put_request(), for an answer.
std::uint32_t put_answer(const Answer& answer, std::span<std::uint8_t> block) noexcept;
// Makes a block with a request valid in another slice.
void change_epoch(std::span<std::uint8_t> block, std::uint32_t epoch) noexcept;
// Sets the time that the caller of a written request has left.
void set_left(std::span<std::uint8_t> block, std::uint32_t left_us) noexcept;
// Marks a written request as given up: its call has ended.
void give_up(std::span<std::uint8_t> block) noexcept;
// Clears a message with a payload of `payload_bytes`, and its trailer.
inline void clear_message(std::span<std::uint8_t> block, std::size_t payload_bytes) noexcept {
    const std::size_t tail = payload_bytes + sizeof(RawTrailer);
    std::memset(block.data() + block.size() - tail, 0, tail);
}
// True if the block cannot hold a request of any slice and any call. Epoch and valid word of a request are never both
// 0, so two words of the trailer decide.
[[nodiscard]] inline bool has_no_request(std::span<const std::uint8_t> block) noexcept {
    std::array<std::uint64_t, 2> last{};
    static_assert(offsetof(RawTrailer, second) >= sizeof(RawTrailer) - sizeof(last));
    std::memcpy(last.data(), block.data() + block.size() - sizeof(last), sizeof(last));
    return (last[0] | last[1]) == 0;
}
// Adds a notice to a written answer.
void add_notice(std::span<std::uint8_t> block, const News& notice) noexcept;

// The result of reading a block. Absent: it was written for something else, or not at all.
enum class Look : std::uint8_t { Absent, There, Nonsense };

// Reads the request of a block, if it is complete.
[[nodiscard]] Look read_request(std::span<const std::uint8_t> block, std::uint32_t epoch, std::uint32_t sequence,
                                Request& request) noexcept;
[[nodiscard]] Look read_answer(std::span<const std::uint8_t> block, std::uint32_t sequence, Answer& answer) noexcept;

}  // namespace cairn::scalerpc
