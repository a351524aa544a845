// cairn-fs bench: what the file system reaches, and a directory of the kernel's under the same driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/fs/session.hpp"

namespace cairn::fstool {

// What is measured: files of a directory. Each function returns 0 or an errno.
class BenchFiles {
public:
    BenchFiles() = default;
    BenchFiles(const BenchFiles&) = delete;
    BenchFiles& operator=(const BenchFiles&) = delete;
    virtual ~BenchFiles() = default;

    virtual int make_directory() = 0;
    virtual int remove_directory() = 0;
    // One file that is kept open; its name is "data".
    virtual int open_data(bool creates) = 0;
    virtual int write_data(std::span<const std::uint8_t> from, std::uint64_t offset) = 0;
    // Reads all of it, or fails.
    virtual int read_data(std::span<std::uint8_t> to, std::uint64_t offset) = 0;
    // Memory to read to and write from.
    [[nodiscard]] virtual std::span<std::uint8_t> buffer(std::size_t bytes) = 0;
    virtual int close_data() = 0;
    virtual int remove_data() = 0;

    // An operation on each of so many files. `in_flight` of them are under way together, if the system can do that.
    enum class Each : std::uint8_t {
        Create,  // and close
        Stat,
        Open,  // and close
        Remove,
        Write,  // create, write, close
        Read,   // open, read all, close
    };
    // `bytes`: for Write and Read.
    virtual int each(Each what, std::uint32_t files, std::uint32_t in_flight, std::uint32_t bytes) = 0;
};

[[nodiscard]] std::unique_ptr<BenchFiles> bench_files_of_directory(const std::string& path);
// The number of files, whether they lie elsewhere, and whether buffers lie in memory that the daemon shares, are among
// the options.
[[nodiscard]] std::unique_ptr<BenchFiles> bench_files_of_client(fs::Client& client, const std::string& path,
                                                                const Options& options);

// The name of a file that is numbered.
[[nodiscard]] std::string bench_name(std::uint32_t number);

// The most that one of 100 shards has of 10,000 names, over the mean, for kinds of names; a JSON object.
[[nodiscard]] std::string measure_balance();

// Measures what the options say, and prints one JSON object. Errors: an operation failed.
Status run_bench(BenchFiles& files, const Options& options);

}  // namespace cairn::fstool
