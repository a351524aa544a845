// Blocks: where a message lies. A session has as many blocks for requests, and for answers, as it may have calls under
// way. The call of sequence number s has block s modulo their number.
//
//     | ... unused ... | payload | grant, if flagged | trailer |  end of the block
//
// The last word of the trailer tells that the message is there: a WRITE stores its bytes in their order (ScaleRPC 3.1).
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

// The blocks of a session. Both ends of a connection have the same shape.
struct BlockShape {
    static constexpr std::uint32_t kLeastBytes = 64;
    static constexpr std::uint32_t kMostBytes = 64U << 10U;
    static constexpr std::uint32_t kMostBlocks = 64;

    std::uint32_t bytes = 4096;  // of a block, a power of two
    std::uint32_t blocks = 8;    // of a session, a power of two

    [[nodiscard]] constexpr bool is_valid() const noexcept {
        return std::has_single_bit(bytes) && bytes >= kLeastBytes && bytes <= kMostBytes &&
               std::has_single_bit(blocks) && blocks <= kMostBlocks;
    }
    [[nodiscard]] constexpr std::uint32_t session_bytes() const noexcept { return bytes * blocks; }
    [[nodiscard]] constexpr std::uint32_t message_max() const noexcept { return bytes - kBlockOverhead; }
    [[nodiscard]] constexpr std::uint32_t index_of(std::uint32_t sequence) const noexcept {
        return sequence & (blocks - 1);
    }
    // Where the block behind that of `sequence` begins, from the session's first block on.
    [[nodiscard]] constexpr std::uint32_t end_of(std::uint32_t sequence) const noexcept {
        return (index_of(sequence) + 1) * bytes;
    }

    friend constexpr bool operator==(const BlockShape&, const BlockShape&) noexcept = default;
};

// The right to WRITE to the server: requests into its pool, until the notice of the same epoch.
struct Grant {
    std::uint64_t address = 0;  // of the session's first block there
    Rkey rkey{};
};

// News of a server for a client. A grant and a notice name the slice by its epoch: the number of the session's slices.
// The welcome comes once: its grant is that of the client's entry.
struct News {
    enum class Kind : std::uint8_t { None, Welcome, Grant, Notice };
    Kind kind = Kind::None;
    std::uint32_t epoch = 0;
    // The first request that the server has not taken. Of a grant: that it has not READ; the client writes from there
    // on.
    std::uint32_t accepted = 0;
    Grant grant{};
};

// How a request ended at its server.
enum class Outcome : std::uint8_t { Answered, NoHandler, Refused, Expired, TooLong, Declined, Count };

struct Request {
    std::uint32_t sequence = 0;
    std::uint8_t type = 0;
    std::uint32_t left_us = 0;  // until the caller's deadline; 0: none
    std::span<const std::uint8_t> payload{};
    bool given_up = false;  // its call has ended: it is not to be executed
};

struct Answer {
    std::uint32_t sequence = 0;
    Outcome outcome{};
    News news{};
    std::span<const std::uint8_t> payload{};
};

// What a block was written for: the slice of an epoch, or these.
constexpr std::uint32_t kStaged = 0;  // a request that waits at the client
constexpr std::uint32_t kAnswer = 0xffffffffU;

// The word that makes a block valid. What an earlier slice or call left there has another one.
[[nodiscard]] constexpr std::uint32_t valid_word(std::uint32_t epoch, std::uint32_t sequence) noexcept {
    return epoch * 0x9e3779b1U + sequence * 2 + 1;
}
// Returns true if the block that ends at `end` looks as if it had a message; the rest of the trailer decides.
[[nodiscard]] inline bool looks_valid(const std::uint8_t* end, std::uint32_t epoch, std::uint32_t sequence) noexcept {
    Be32 valid;
    std::memcpy(&valid, end - sizeof(valid), sizeof(valid));
    return valid.get() == valid_word(epoch, sequence);
}

// Writes a request into the end of its block. Returns how many bytes before the end it begins. The payload fits
// (asserted).
std::uint32_t put_request(const Request& request, std::uint32_t epoch, std::span<std::uint8_t> block) noexcept;
// Likewise an answer.
std::uint32_t put_answer(const Answer& answer, std::span<std::uint8_t> block) noexcept;
// Makes a block that has a request valid in another slice.
void change_epoch(std::span<std::uint8_t> block, std::uint32_t epoch) noexcept;
// Tells the server of a request that was put how much time its caller has left.
void set_left(std::span<std::uint8_t> block, std::uint32_t left_us) noexcept;
// Tells the server of a request that was put that its call has ended.
void give_up(std::span<std::uint8_t> block) noexcept;
// Makes a message zero whose payload has so many bytes, and its trailer.
inline void clear_message(std::span<std::uint8_t> block, std::size_t payload_bytes) noexcept {
    const std::size_t tail = payload_bytes + sizeof(RawTrailer);
    std::memset(block.data() + block.size() - tail, 0, tail);
}
// Returns true if no request of a slice can be in the block, whatever slice and call it was written for. Its epoch and
// its valid word are not both 0, so that two words of the trailer tell.
[[nodiscard]] inline bool has_no_request(std::span<const std::uint8_t> block) noexcept {
    std::array<std::uint64_t, 2> last{};
    static_assert(offsetof(RawTrailer, second) >= sizeof(RawTrailer) - sizeof(last));
    std::memcpy(last.data(), block.data() + block.size() - sizeof(last), sizeof(last));
    return (last[0] | last[1]) == 0;
}
// Adds a notice to an answer that was put.
void add_notice(std::span<std::uint8_t> block, const News& notice) noexcept;

// A block that was read. Absent: it was written for something else, or not at all.
enum class Look : std::uint8_t { Absent, There, Nonsense };

// Reads the request of a block, if it is there.
[[nodiscard]] Look read_request(std::span<const std::uint8_t> block, std::uint32_t epoch, std::uint32_t sequence,
                                Request& request) noexcept;
[[nodiscard]] Look read_answer(std::span<const std::uint8_t> block, std::uint32_t sequence, Answer& answer) noexcept;

}  // namespace cairn::scalerpc
