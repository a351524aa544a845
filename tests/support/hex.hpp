// Bytes written as hexadecimal text and back, for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::test {

// Reads text such as "00 ff 1a", with or without blanks.
inline std::vector<std::uint8_t> from_hex(std::string_view text) {
    std::vector<std::uint8_t> bytes;
    bool high = true;
    for (const char c : text) {
        const std::string_view digits = "0123456789abcdef";
        const std::size_t digit = digits.find(c);
        if (digit == std::string_view::npos) {
            continue;
        }
        if (high) {
            bytes.push_back(static_cast<std::uint8_t>(digit << 4U));
        } else {
            bytes.back() = static_cast<std::uint8_t>(bytes.back() | digit);
        }
        high = !high;
    }
    return bytes;
}

inline std::string to_hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4U];
        text += "0123456789abcdef"[byte & 15U];
    }
    return text;
}

}  // namespace cairn::test
