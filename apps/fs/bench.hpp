// cairn-fs bench: measures the rates of the file system, or of a directory of the kernel's with the same driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/fs/session.hpp"

namespace cairn::fstool {

// The files that are measured, in a directory. Each function returns 0 or an errno.
class BenchFiles {
public:
    BenchFiles() = default;
    BenchFiles(const BenchFiles&) = delete;
    BenchFiles& operator=(const BenchFiles&) = delete;
    virtual ~BenchFiles() = default;

    virtual int make_directory() = 0;
    virtual int remove_directory() = 0;
    // Opens one file that is kept open; its name is "data".
    virtual int open_data(bool creates) = 0;
    virtual int write_data(std::span<const std::uint8_t> from, std::uint64_t offset) = 0;
    // Reads the whole buffer, or fails.
    virtual int read_data(std::span<std::uint8_t> to, std::uint64_t offset) = 0;
    // Returns memory to read to and write from.
    [[nodiscard]] virtual std::span<std::uint8_t> buffer(std::size_t bytes) = 0;
    virtual int close_data() = 0;
    virtual int remove_data() = 0;

    // An operation on each of `files` files. `in_flight` of them are under way together, if the system can do that.
    enum class Each : std::uint8_t {
        Create,  // and close
        Stat,
        Open,  // and close
        Remove,
        Write,  // create, write, close
        Read,   // open, read all, close
    };
    // Does the operation. `bytes` is for Write and Read.
    virtual int each(Each what, std::uint32_t files, std::uint32_t in_flight, std::uint32_t bytes) = 0;
};

[[nodiscard]] std::unique_ptr<BenchFiles> bench_files_of_directory(const std::string& path);
// Makes the files in the file system. The options have the number of files, whether other daemons have them, and
// whether the daemon shares the buffers' memory.
[[nodiscard]] std::unique_ptr<BenchFiles> bench_files_of_client(fs::Client& client, const std::string& path,
                                                                const Options& options);

// Returns the name of file `number`.
[[nodiscard]] std::string bench_name(std::uint32_t number);

// Returns how evenly names spread over 100 shards, as a JSON object: for each kind of names, the most of 10,000 that a
// shard has, over the mean.
[[nodiscard]] std::string measure_balance();

// Runs the measurement that the options choose, and prints one JSON object. Errors: an operation failed.
Status run_bench(BenchFiles& files, const Options& options);

}  // namespace cairn::fstool
