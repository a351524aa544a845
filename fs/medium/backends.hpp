// The kinds of media. Each function gives the kind that it names. If that cannot be had, the Error names the path and
// the remedy.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fs/medium/medium.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// A length is a multiple of 2 MiB, as that of a DAX device is, from 16 MiB to 64 TiB.
//
// If `bytes` is 0, the path must exist, and the medium has its length. Otherwise a file that is absent or empty is
// made, for its owner alone. All its room is taken at once, so a full disk is an Error here, not a signal later. A file
// of another length is refused, never cut or extended. If an Error follows, a file that was made is removed again.
//
// A path belongs to one medium at a time (flock), in this process or another. It is free again when the medium or its
// process ends. If another process cuts the file meanwhile, SIGBUS ends this one.

// Makes memory: Granularity::None, on the largest pages that the kernel gives.
Result<std::unique_ptr<Medium>> make_memory(std::size_t bytes);

struct PmemChoice {
    bool allow_fake = false;  // takes an ordinary file, as if it were persistent memory
};

// Opens a DAX device, or a file in a file system that is mounted with DAX. The granularity is CacheLine, or Byte if the
// caches themselves survive a loss of power (eADR). A device is taken as a whole; `bytes` is 0 or its length.
// Fake: opens any other file, such as one in /dev/shm, with the same instructions; Granularity::CacheLine. It survives
// the death of the process. When the power goes, it loses part of what it says is durable. describe() says so.
// Errors: also an environment variable that makes libpmem take ordinary memory for persistent memory.
Result<std::unique_ptr<Medium>> open_pmem(const std::string& path, std::size_t bytes, PmemChoice choice = {});

// Opens an ordinary file through the page cache: Granularity::Page. All of it is in memory when it is opened. The first
// store to a page after a sync() still enters the kernel.
Result<std::unique_ptr<Medium>> open_file(const std::string& path, std::size_t bytes);

}  // namespace cairn::fs
