// BackingFile: the file or device of a medium, open and locked; and the first touch of its pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fs/medium/path_kind.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// Owns a descriptor and its lock. Movable. The destructor ends both. It removes the file if this object made it and
// keep() was not called.
class BackingFile {
public:
    // Opens a file. Errors and lengths: see backends.hpp. With Devices::Taken, a DAX device is allowed, too.
    static Result<BackingFile> open(const std::string& path, std::size_t bytes, Devices devices);

    BackingFile(BackingFile&& other) noexcept;
    BackingFile& operator=(BackingFile&& other) = delete;
    BackingFile(const BackingFile&) = delete;
    BackingFile& operator=(const BackingFile&) = delete;
    ~BackingFile();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Returns the length. For a device: the length that was asked for, or 0 if any will do.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    // Keeps the file, whether it existed before or not.
    void keep() noexcept { made_ = false; }

private:
    explicit BackingFile(std::string path) : path_(std::move(path)) {}

    Status open_or_make(bool may_make);
    Status lock();
    Status settle_length(std::size_t wanted, Devices devices);
    Status take_room(std::size_t bytes);
    Status record_name();

    std::string path_;
    std::size_t bytes_ = 0;
    int fd_ = -1;
    bool made_ = false;
};

enum class Touch : std::uint8_t {
    Read,   // the pages are mapped, and stay unchanged for a medium that writes changed pages back
    Write,  // the pages are mapped, ready for stores
};

// Lets the kernel map all pages now, with their present content. `path` is named in the Error.
Status populate(std::span<std::uint8_t> memory, Touch touch, const std::string& path);

// As populate(), page by page, for kernels without a call for it. No other thread may store meanwhile.
void touch_pages(std::span<std::uint8_t> memory, Touch touch) noexcept;

}  // namespace cairn::fs
