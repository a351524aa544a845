// The contents of messages in a simulated workload. They follow from the call's tag, so that any party can tell a right
// message from a wrong one.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::sim {

// The start of every request: whose call it is, and how long the response must be.
struct CallTag {
    std::uint32_t client = 0;
    std::uint32_t serial = 0;  // counts all calls in the world; kInnerCall: a call that a handler makes
    std::uint32_t response_bytes = 0;

    [[nodiscard]] static CallTag read(std::span<const std::uint8_t> message) noexcept {
        CallTag tag;
        std::memcpy(&tag, message.data(), sizeof(tag));
        return tag;
    }
};

constexpr std::uint32_t kInnerCall = 0xffffffffU;
constexpr std::uint32_t kBriefMost = 100;    // bytes of a short message
constexpr std::uint8_t kOverwritten = 0xdd;  // each byte of a buffer that is its owner's again

enum class Part : std::uint8_t { Request = 0x11, Response = 0xc3 };

// Returns byte `i` of this part of the call.
[[nodiscard]] constexpr std::uint8_t content_at(const CallTag& tag, std::size_t i, Part part) noexcept {
    return static_cast<std::uint8_t>((tag.serial * 31U + tag.client * 7U + i * 13U) ^ static_cast<std::uint8_t>(part));
}

inline void fill_response(std::span<std::uint8_t> message, const CallTag& tag) noexcept {
    for (std::size_t i = 0; i < message.size(); ++i) {
        message[i] = content_at(tag, i, Part::Response);
    }
}

// `message` has at least sizeof(CallTag) bytes.
inline void fill_request(std::span<std::uint8_t> message, const CallTag& tag) noexcept {
    std::memcpy(message.data(), &tag, sizeof(tag));
    for (std::size_t i = sizeof(tag); i < message.size(); ++i) {
        message[i] = content_at(tag, i, Part::Request);
    }
}

// True if the message has the contents of the tag from byte `first` on.
[[nodiscard]] inline bool holds(std::span<const std::uint8_t> message, std::size_t first, const CallTag& tag,
                                Part part) noexcept {
    unsigned wrong = 0;  // no early end, so that the loop compares many bytes at once
    for (std::size_t i = first; i < message.size(); ++i) {
        wrong |= static_cast<unsigned>(message[i] ^ content_at(tag, i, part));
    }
    return wrong == 0;
}

}  // namespace cairn::sim
