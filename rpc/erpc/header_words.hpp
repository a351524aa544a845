// The eRPC header of a data packet as two words, for packets that the short path knows by them. RawHeader has the same
// bytes field by field.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::erpc {

// The first word, in bits: version 8, kind 8, request type 8, message size 24, session 16.
class FirstWord {
public:
    [[nodiscard]] static FirstWord read(const std::uint8_t* at) noexcept {
        Be64 raw;
        std::memcpy(&raw, at, sizeof(raw));
        return FirstWord{raw.get()};
    }
    [[nodiscard]] static FirstWord of(std::uint8_t request_type, std::size_t message_bytes, SessionId to) noexcept {
        return FirstWord{kData | (std::uint64_t{request_type} << 40U) | (std::uint64_t{message_bytes} << 16U) |
                         to.number()};
    }
    // Returns this word with a type and a size. The word has neither yet.
    [[nodiscard]] FirstWord with(std::uint8_t request_type, std::size_t message_bytes) const noexcept {
        return FirstWord{value_ | (std::uint64_t{request_type} << 40U) | (std::uint64_t{message_bytes} << 16U)};
    }
    void write(std::uint8_t* at) const noexcept {
        const Be64 raw{value_};
        std::memcpy(at, &raw, sizeof(raw));
    }
    // True for a data packet of our version.
    [[nodiscard]] bool is_data() const noexcept { return value_ >> 48U == kData >> 48U; }
    [[nodiscard]] std::uint8_t request_type() const noexcept { return static_cast<std::uint8_t>(value_ >> 40U); }
    [[nodiscard]] std::uint32_t message_bytes() const noexcept {
        return static_cast<std::uint32_t>(value_ >> 16U) & 0xffffffU;
    }
    [[nodiscard]] SessionId session() const noexcept { return SessionId{static_cast<std::uint16_t>(value_)}; }
    [[nodiscard]] bool operator==(const FirstWord&) const noexcept = default;

private:
    static constexpr std::uint64_t kData =
        (std::uint64_t{kHeaderVersion} << 56U) | (static_cast<std::uint64_t>(Kind::Data) << 48U);
    explicit FirstWord(std::uint64_t value) noexcept : value_(value) {}

    std::uint64_t value_;
};

// The second word, in bits: packet type 2, packet number 14, request number 44, magic 4. The packet number is 0, since
// the packet is its message's only one.
class SecondWord {
public:
    [[nodiscard]] static SecondWord read(const std::uint8_t* at) noexcept {
        Be64 raw;
        std::memcpy(&raw, at, sizeof(raw));
        return SecondWord{raw.get()};
    }
    [[nodiscard]] static SecondWord of(PacketType type, std::uint64_t request_number) noexcept {
        return SecondWord{(static_cast<std::uint64_t>(type) << 62U) | (request_number << 4U) | kMagic};
    }
    void write(std::uint8_t* at) const noexcept {
        const Be64 raw{value_};
        std::memcpy(at, &raw, sizeof(raw));
    }
    // Returns the word of the same packet in the slot's next call. After the last request number it overflows into a
    // word that no sound peer sends; a forger gains nothing by sending it.
    [[nodiscard]] SecondWord of_next_call() const noexcept {
        return SecondWord{value_ + (std::uint64_t{kSlotsPerSession} << 4U)};
    }
    // The word belongs to a request. Returns the word of its answer in one packet.
    [[nodiscard]] SecondWord of_answer() const noexcept {
        return SecondWord{value_ | static_cast<std::uint64_t>(PacketType::Response) << 62U};
    }
    // Returns a word that no packet has.
    [[nodiscard]] static SecondWord none() noexcept { return SecondWord{0}; }
    [[nodiscard]] std::uint32_t slot_index() const noexcept {
        return static_cast<std::uint32_t>(value_ >> 4U) % kSlotsPerSession;
    }
    friend bool operator==(const SecondWord&, const SecondWord&) noexcept = default;

private:
    explicit SecondWord(std::uint64_t value) noexcept : value_(value) {}

    std::uint64_t value_;
};

}  // namespace cairn::erpc
