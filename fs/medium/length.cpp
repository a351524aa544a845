#include "fs/medium/length.hpp"

#include <fmt/format.h>

namespace cairn::fs {

Status judge_length(std::string_view what, std::size_t bytes) {
    if (bytes >= kLeastBytes && bytes <= kMostBytes && bytes % kLengthUnitBytes == 0) {
        return Nothing{};
    }
    return Error{fmt::format("{} of {}", what, length_text(bytes)), "give a multiple of 2 MiB, from 16 MiB to 64 TiB"};
}

std::string length_text(std::size_t bytes) {
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    return bytes % kMiB == 0 ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

}  // namespace cairn::fs
