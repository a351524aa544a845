#include "apps/fs/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace cairn::fstool {

namespace {

constexpr double kMiB = 1 << 20;
constexpr std::uint32_t kEasyBytes = 1U << 20U;  // of ior's easy runs
constexpr std::uint32_t kHardBytes = 47'008;     // of its hard ones
constexpr std::uint32_t kSmallFileBytes = 3901;  // of mdtest's hard runs

// Runs steps, and keeps the first error.
class Bench {
public:
    Bench(BenchFiles& files, const Options& options) : files_(files), options_(options) {}

    Status run() {
        did("make its directory", files_.make_directory());
        if (options_.bench == "easy") {
            data("easy", kEasyBytes);
        } else if (options_.bench == "hard") {
            data("hard", kHardBytes);
        } else if (options_.bench == "md") {
            names();
        } else if (options_.bench == "small") {
            small_files();
        } else {
            each("fill", BenchFiles::Each::Write, kSmallFileBytes);
        }
        if (options_.bench != "fill") {
            did("remove its directory", files_.remove_directory());
        }
        if (error_ != 0) {
            return Error{fmt::format("cannot {}: {}", failed_, std::strerror(error_)), ""};
        }
        fmt::print("{{{}}}\n", results_);
        return Nothing{};
    }

private:
    void did(const char* what, int error) {
        if (error_ == 0 && error != 0) {
            error_ = error;
            failed_ = what;
        }
    }
    template <class Run>
    double seconds_of(const Run& run) {
        const auto begin = std::chrono::steady_clock::now();
        run();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    void add(const std::string& name, double value) {
        results_ += fmt::format("{}\"{}\": {:.2f}", results_.empty() ? "" : ", ", name, value);
    }
    // Writes a new file from its beginning to its end, then reads it the same way.
    void data(const std::string& name, std::uint32_t piece) {
        const std::uint64_t pieces = options_.size / piece;
        const std::span<std::uint8_t> bytes = files_.buffer(piece);
        const std::span<std::uint8_t> read = files_.buffer(piece);
        if (bytes.empty() || read.empty()) {
            did("get buffers", ENOMEM);
            return;
        }
        for (std::size_t i = 0; i != bytes.size(); ++i) {
            bytes[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13U);
        }
        did("create", files_.open_data(true));
        const double mib = static_cast<double>(pieces) * piece / kMiB;
        add(name + "_write_mib_s", mib / seconds_of([&] {
                                       for (std::uint64_t i = 0; i != pieces && error_ == 0; ++i) {
                                           did("write", files_.write_data(bytes, i * piece));
                                       }
                                   }));
        did("close", files_.close_data());
        did("open", files_.open_data(false));
        add(name + "_read_mib_s", mib / seconds_of([&] {
                                      for (std::uint64_t i = 0; i != pieces && error_ == 0; ++i) {
                                          did("read", files_.read_data(read, i * piece));
                                      }
                                  }));
        if (error_ == 0 && !std::ranges::equal(read, bytes)) {
            did("read what was written", EIO);
        }
        did("close", files_.close_data());
        did("remove", files_.remove_data());
    }
    void each(const std::string& name, BenchFiles::Each what, std::uint32_t bytes = 0) {
        const double seconds =
            seconds_of([&] { did(name.c_str(), files_.each(what, options_.files, options_.in_flight, bytes)); });
        add(name + "_k_s", options_.files / 1e3 / seconds);
    }
    void names() {
        each("create", BenchFiles::Each::Create);
        each("stat", BenchFiles::Each::Stat);
        each("open", BenchFiles::Each::Open);
        each("remove", BenchFiles::Each::Remove);
    }
    void small_files() {
        each("create", BenchFiles::Each::Write, kSmallFileBytes);
        each("read", BenchFiles::Each::Read, kSmallFileBytes);
        each("remove", BenchFiles::Each::Remove);
    }

    BenchFiles& files_;
    const Options& options_;
    std::string results_;
    std::string failed_;
    int error_ = 0;
};

}  // namespace

std::string bench_name(std::uint32_t number) {
    return fmt::format("file.mdtest.0.{}", number);
}

Status run_bench(BenchFiles& files, const Options& options) {
    return Bench(files, options).run();
}

}  // namespace cairn::fstool
