// The contents of messages in a simulated workload. They follow from the call's tag. So any part of a test can judge a
// message, and can name the owner of message bytes wherever they are found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::sim {

// The start of every request: its call, and the length of its response.
struct CallTag {
    std::uint32_t client = 0;
    std::uint32_t serial = 0;  // counts all calls in the world; kInnerCall: a call of a handler
    std::uint32_t response_bytes = 0;

    [[nodiscard]] static CallTag read(std::span<const std::uint8_t> message) noexcept {
        CallTag tag;
        std::memcpy(&tag, message.data(), sizeof(tag));
        return tag;
    }
};

constexpr std::uint32_t kInnerCall = 0xffffffffU;

// Returns how much of the response a handler writes. Some handlers leave the end of their room as it is.
[[nodiscard]] constexpr std::uint32_t written_of(const CallTag& tag) noexcept {
    return tag.serial != kInnerCall && tag.serial % 16 == 7 ? tag.response_bytes / 3 : tag.response_bytes;
}

constexpr std::uint32_t kBriefMost = 100;    // bytes of a short message
constexpr std::uint8_t kOverwritten = 0xdd;  // each byte of a buffer that its owner may use again

enum class Part : std::uint8_t { Request, Response };

// The message to which bytes belong.
struct Owner {
    std::uint32_t client = 0;
    std::uint32_t serial = 0;
    Part part{};
};

// A message is a sequence of words of 8 bytes. Each is a number that has the owner in its high bits and the word's
// place in its low bits, under a bijection. Successive words have successive numbers. Two random words do so once in
// 2^64 cases.
struct ContentWord {
    static constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;  // odd
    static constexpr unsigned kPlaceBits = 21;                     // 16 MB
    static constexpr unsigned kSerialBits = 32;
    static constexpr unsigned kNumberBits = 60;  // clients are fewer than 64

    [[nodiscard]] static constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
        std::uint64_t inverse = odd;  // right in the three lowest bits; each step doubles the number of right bits
        for (int i = 0; i < 5; ++i) {
            inverse *= 2 - odd * inverse;
        }
        return inverse;
    }
    [[nodiscard]] static constexpr std::uint64_t hidden(std::uint64_t number) noexcept {
        number *= kFactor;
        return (number ^ number >> 32U) * kFactor;
    }
    [[nodiscard]] static constexpr std::uint64_t shown(std::uint64_t word) noexcept {
        constexpr std::uint64_t kInverse = inverse_of(kFactor);
        word *= kInverse;
        return (word ^ word >> 32U) * kInverse;
    }
    [[nodiscard]] static constexpr std::uint64_t number_of(const CallTag& tag, Part part, std::size_t place) noexcept {
        const std::uint64_t owner =
            (std::uint64_t{tag.client} << kSerialBits | tag.serial) << 1U | static_cast<std::uint64_t>(part);
        return owner << kPlaceBits | place;
    }
    [[nodiscard]] static constexpr Owner owner_of(std::uint64_t number) noexcept {
        const std::uint64_t owner = number >> kPlaceBits;
        return {static_cast<std::uint32_t>(owner >> (kSerialBits + 1)), static_cast<std::uint32_t>(owner >> 1U),
                static_cast<Part>(owner & 1U)};
    }
    [[nodiscard]] static std::uint64_t shown_at(const std::uint8_t* from) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, from, sizeof(word));
        return shown(word);
    }
};
static_assert(ContentWord::shown(ContentWord::hidden(0x123456789abcdefU)) == 0x123456789abcdefU);

// Calls f(i, octets) for each part of a word in a message of this length, from byte `first` on.
template <class F>
void for_each_piece(std::size_t first, std::size_t bytes, const CallTag& tag, Part part, F&& f) noexcept {
    for (std::size_t i = first; i < bytes;) {
        const std::uint64_t word = ContentWord::hidden(ContentWord::number_of(tag, part, i / sizeof(word)));
        const std::size_t within = i % sizeof(word);
        const std::size_t count = std::min(sizeof(word) - within, bytes - i);
        f(i, std::span(reinterpret_cast<const std::uint8_t*>(&word) + within, count));
        i += count;
    }
}

inline void fill(std::span<std::uint8_t> message, std::size_t first, const CallTag& tag, Part part) noexcept {
    for_each_piece(first, message.size(), tag, part, [message](std::size_t i, std::span<const std::uint8_t> octets) {
        std::memcpy(message.data() + i, octets.data(), octets.size());
    });
}

inline void fill_response(std::span<std::uint8_t> message, const CallTag& tag) noexcept {
    fill(message, 0, tag, Part::Response);
}

// Fills a request of at least sizeof(CallTag) bytes.
inline void fill_request(std::span<std::uint8_t> message, const CallTag& tag) noexcept {
    std::memcpy(message.data(), &tag, sizeof(tag));
    fill(message, sizeof(tag), tag, Part::Request);
}

// True if the message has the contents of the tag from byte `first` on.
[[nodiscard]] inline bool holds(std::span<const std::uint8_t> message, std::size_t first, const CallTag& tag,
                                Part part) noexcept {
    bool right = true;
    for_each_piece(first, message.size(), tag, part, [&](std::size_t i, std::span<const std::uint8_t> octets) {
        right = right && std::memcmp(message.data() + i, octets.data(), octets.size()) == 0;
    });
    return right;
}

// Calls f(owner) for message content in `bytes`, wherever it lies. Content of less than 23 bytes may go unseen.
template <class F>
void for_each_owner(std::span<const std::uint8_t> bytes, F&& f) {
    for (std::size_t at = 0; at + 2 * sizeof(std::uint64_t) <= bytes.size(); ++at) {
        const std::uint64_t number = ContentWord::shown_at(bytes.data() + at);
        if (number >> ContentWord::kNumberBits == 0 &&
            ContentWord::shown_at(bytes.data() + at + sizeof(number)) == number + 1) [[unlikely]] {
            f(ContentWord::owner_of(number));
            at += sizeof(number) - 1;
        }
    }
}

// True if all bytes are 0, as in room that was not written to.
[[nodiscard]] inline bool is_clean(std::span<const std::uint8_t> bytes) noexcept {
    return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t each) { return each == 0; });
}

// Writes the response, or a part of it, into the room that a handler got for it. Returns false if the room has a wrong
// size, or is not empty.
[[nodiscard]] inline bool write_response(std::span<std::uint8_t> room, const CallTag& tag) noexcept {
    const bool right = room.size() == tag.response_bytes && is_clean(room);
    fill_response(room.first(std::min<std::size_t>(written_of(tag), room.size())), tag);
    return right;
}

// True if the response begins with `written` bytes of its handler, and the rest is empty.
[[nodiscard]] inline bool is_response(std::span<const std::uint8_t> response, std::size_t written,
                                      const CallTag& tag) noexcept {
    written = std::min(written, response.size());
    return holds(response.first(written), 0, tag, Part::Response) && is_clean(response.subspan(written));
}

[[nodiscard]] inline bool has_content(std::span<const std::uint8_t> bytes) noexcept {
    bool any = false;
    for_each_owner(bytes, [&any](const Owner&) { any = true; });
    return any;
}

}  // namespace cairn::sim
