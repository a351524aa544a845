// Conversion of attributes to struct stat.
#pragma once

#include <sys/stat.h>

#include "fs/message/answers.hpp"

namespace cairn::fs {

[[nodiscard]] constexpr timespec timespec_of(std::int64_t ns) noexcept {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t rest = ns % kSecond < 0 ? ns % kSecond + kSecond : ns % kSecond;
    return {(ns - rest) / kSecond, rest};
}

// Returns the struct. Its blocks are those of a file without holes.
[[nodiscard]] inline struct stat stat_of(const Attributes& attributes, std::uint32_t chunk_bytes) noexcept {
    constexpr std::uint64_t kBlockBytes = 512;
    struct stat facts {};
    facts.st_ino = attributes.id.place;
    facts.st_mode = attributes.mode;
    facts.st_nlink = attributes.links;
    facts.st_uid = attributes.uid;
    facts.st_gid = attributes.gid;
    facts.st_size = static_cast<off_t>(attributes.size);
    facts.st_blksize = static_cast<blksize_t>(chunk_bytes);
    facts.st_blocks =
        static_cast<blkcnt_t>(attributes.size / kBlockBytes + (attributes.size % kBlockBytes != 0 ? 1 : 0));
    facts.st_atim = timespec_of(attributes.accessed_ns);
    facts.st_mtim = timespec_of(attributes.modified_ns);
    facts.st_ctim = timespec_of(attributes.changed_ns);
    return facts;
}

}  // namespace cairn::fs
