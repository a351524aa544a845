// The media that every machine has, and a folder for their files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>

#include "fs/medium/backends.hpp"

namespace cairn::fs {

constexpr std::size_t kTestBytes = std::size_t{16} << 20U;

// A folder of this process; it is deleted with its files when the test ends.
class Folder {
public:
    explicit Folder(const std::string& within)
        : path_(std::filesystem::path(within) / ("cairn_medium_" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directory(path_);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

// A medium that keeps its content in a file.
struct Backend {
    const char* name;
    bool fake_pmem;
    bool in_memory;  // the file is in /dev/shm

    [[nodiscard]] Result<std::unique_ptr<Medium>> open(const std::string& path, std::size_t bytes) const {
        return fake_pmem ? open_pmem(path, bytes, {.allow_fake = true}) : open_file(path, bytes);
    }
    [[nodiscard]] std::string folder() const { return in_memory ? "/dev/shm" : testing::TempDir(); }
    friend std::ostream& operator<<(std::ostream& out, const Backend& backend) { return out << backend.name; }
};

inline constexpr Backend kBackends[] = {
    {"File", false, false}, {"FileInMemory", false, true}, {"FakePmem", true, false}, {"FakePmemInMemory", true, true}};

// Runs a test with each of them, with a folder.
class OfAFile : public testing::TestWithParam<Backend> {
protected:
    void SetUp() override {
        if (::access(GetParam().folder().c_str(), W_OK) != 0) {
            GTEST_SKIP() << GetParam().folder() << " is not there";
        }
        folder_ = std::make_unique<Folder>(GetParam().folder());
        path_ = folder_->file("region");
    }
    [[nodiscard]] Result<std::unique_ptr<Medium>> open(std::size_t bytes) const {
        return GetParam().open(path_, bytes);
    }
    [[nodiscard]] std::string refusal(std::size_t bytes) const {
        const Result<std::unique_ptr<Medium>> opened = open(bytes);
        return opened.ok() ? "not refused" : opened.error().text();
    }

    std::unique_ptr<Folder> folder_;
    std::string path_;
};

}  // namespace cairn::fs
