// The length of a medium: its range, and its text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::fs {

constexpr std::size_t kLengthUnitBytes = std::size_t{2} << 20U;
constexpr std::size_t kLeastBytes = std::size_t{16} << 20U;
constexpr std::size_t kMostBytes = std::size_t{64} << 40U;

// Judges a length. `what` is named in the Error.
Status judge_length(std::string_view what, std::size_t bytes);

// Returns "64 MiB", or the bytes if they are no whole number of MiB.
std::string length_text(std::size_t bytes);

}  // namespace cairn::fs
