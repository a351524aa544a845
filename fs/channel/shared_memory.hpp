// Memory that a daemon makes for a client, and that both map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/result.hpp"

namespace cairn::fs {

// A mapping of such memory. The memory stays where it is until the object ends.
class SharedMemory {
public:
    enum class Pages : std::uint8_t { AtOnce, AsTouched };

    // Makes memory of zeros. It is sealed: its length never changes. Errors: no memory.
    static Result<SharedMemory> create(std::size_t bytes, Pages pages);
    // Maps memory that a daemon made, and takes its descriptor. Errors: the memory has another length, or can be cut.
    static Result<SharedMemory> map(int fd, std::size_t bytes, Pages pages);
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&&) = delete;
    ~SharedMemory();

    // Returns the descriptor, which belongs to the object.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

private:
    SharedMemory(int fd, std::span<std::uint8_t> bytes) noexcept : fd_(fd), bytes_(bytes) {}

    int fd_;
    std::span<std::uint8_t> bytes_;
};

}  // namespace cairn::fs
