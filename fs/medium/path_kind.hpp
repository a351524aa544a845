// What lies at the path of a medium, and which of that a medium takes.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::fs {

enum class Devices : std::uint8_t { Refused, Taken };

enum class PathKind : std::uint8_t {
    File,
    DaxDevice,    // persistent memory, of which no file system is made
    OtherDevice,  // any other character device
    Disk,         // a block device; persistent memory under a file system is one as well
    Other,        // a folder, a pipe, a socket
};

// `facts`: stat() of it. Asks /sys what a character device is; without /sys none is a DAX device.
[[nodiscard]] PathKind kind_of(const struct stat& facts);

// Errors: no medium takes it, or only one that takes devices; they say how what is there can serve.
[[nodiscard]] Status judge_kind(const std::string& path, PathKind kind, Devices devices);

}  // namespace cairn::fs
