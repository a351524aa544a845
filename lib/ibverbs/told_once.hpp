// Lines on stderr that explain what programs do not explain themselves.
#pragma once

#include <string>

namespace cairn::ibverbs {

// Prints the line, unless this process has printed it before: programs try again. Beyond so many different lines none
// is printed.
constexpr std::size_t kMostLines = 64;
void tell_once(const std::string& line) noexcept;

}  // namespace cairn::ibverbs
