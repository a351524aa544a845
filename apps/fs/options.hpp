// The arguments of cairn-fs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::fstool {

struct Options {
    std::string socket{};  // empty: the client's default
    double timeout_s = 10;
    std::string command{};
    std::vector<std::string> paths{};
    // These are of some commands.
    bool is_long = false;       // ls
    bool with_parents = false;  // mkdir
    bool recursive = false;     // cp, rm
    bool force = false;         // rm
    bool no_replace = false;    // mv
    bool symbolic = false;      // ln
    std::uint32_t mode = 0777;  // mkdir, chmod
    std::uint64_t size = 0;     // truncate, bench
    // These are of bench.
    std::string bench{};      // easy, hard, md, small, fill, balance
    bool elsewhere = false;   // the measured files are at other daemons
    std::string directory{};  // a directory of the kernel's, instead of the file system's
    std::uint32_t files = 0;
    std::uint32_t in_flight = 1;
    bool relaxed = false;  // not strict
    bool shares_buffers = false;
};

// Parses the arguments. Errors: a wrong argument, by name, and the remedy.
Result<Options> parse_options(int argc, char** argv);

}  // namespace cairn::fstool
