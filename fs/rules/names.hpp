// Rules for a name in a directory.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

namespace cairn::fs {

constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestPath = 4095;

// Returns 0 or an errno. A name is any bytes but '/' and 0, up to kLongestName of them. "." and ".." are no names; the
// client looks them up.
[[nodiscard]] constexpr int judge_name(std::string_view name) noexcept {
    if (name.empty()) {
        return ENOENT;
    }
    if (name.size() > kLongestName) {
        return ENAMETOOLONG;
    }
    const bool is_name = name != "." && name != ".." && name.find('/') == std::string_view::npos &&
                         name.find('\0') == std::string_view::npos;
    return is_name ? 0 : EINVAL;
}

}  // namespace cairn::fs
