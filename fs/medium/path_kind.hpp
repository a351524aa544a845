// The kinds of paths for a medium, and which of them a medium takes.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::fs {

enum class Devices : std::uint8_t { Refused, Taken };

enum class PathKind : std::uint8_t {
    File,
    DaxDevice,    // persistent memory without a file system
    OtherDevice,  // any other character device
    Disk,         // a block device; also persistent memory under a file system
    Other,        // a folder, a pipe, a socket
};

// Returns the kind of a path; `facts` is its stat(). Looks a character device up in /sys; without /sys none is a DAX
// device.
[[nodiscard]] PathKind kind_of(const struct stat& facts);

// Judges a path. Errors: no medium takes it, or only one that takes devices. The Error says how the device can be used.
[[nodiscard]] Status judge_kind(const std::string& path, PathKind kind, Devices devices);

}  // namespace cairn::fs
