// What media there are. None of these functions gives another kind of medium than the one that it is asked for: what
// cannot be had is an Error that names the path and the remedy.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fs/medium/medium.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// A length is a multiple of 2 MiB, as that of a DAX device is, from 16 MiB to 64 TiB.
//
// A path has the length that it has when `bytes` is 0, and has to exist then. Otherwise a file that is absent or empty
// is made, for its owner alone, with all its room taken at once: a full disk is an Error here, not a signal later. A
// file of another length is refused, never cut or extended. A file that was made for nothing is removed again.
//
// A path belongs to one medium at a time (flock), in this process or another. It is free again when the medium or its
// process ends. Whoever cuts the file meanwhile ends the process by SIGBUS.

// Granularity::None, on the largest pages that the kernel gives.
Result<std::unique_ptr<Medium>> make_memory(std::size_t bytes);

struct PmemChoice {
    bool allow_fake = false;  // an ordinary file is used as persistent memory is
};

// A DAX device, or a file in a file system that is mounted with DAX: Granularity::CacheLine, or Byte where the caches
// themselves survive a loss of power (eADR). Of a device all is taken; `bytes` is 0 or its length.
// Fake: any other file, such as one in /dev/shm, by the same instructions, Granularity::CacheLine. It survives the
// death of the process and loses part of what it says is durable when the power goes. describe() says so.
// Errors: also a variable of the environment that lets libpmem see persistent memory where none is.
Result<std::unique_ptr<Medium>> open_pmem(const std::string& path, std::size_t bytes, PmemChoice choice = {});

// An ordinary file through the page cache: Granularity::Page. All of it is in memory when it is opened; the first store
// to a page after a sync() still tells the kernel so.
Result<std::unique_ptr<Medium>> open_file(const std::string& path, std::size_t bytes);

}  // namespace cairn::fs
