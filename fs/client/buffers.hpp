// Buffers: memory that a client and all shards of its daemon share, for buffers of the program's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fs/channel/shared_memory.hpp"

namespace cairn::fs {

// The memory that the daemon gave at one meeting. Any thread may use it.
class BufferPool {
public:
    BufferPool(SharedMemory memory, std::uint64_t meeting);

    // Takes a buffer, which begins on a page. Returns null if there is no room for `bytes`.
    [[nodiscard]] std::uint8_t* take(std::size_t bytes);
    // Gives a buffer back. Returns false if it was not taken from this pool.
    [[nodiscard]] bool give_back(const std::uint8_t* buffer);
    // Returns the offset of the bytes in the memory, or nothing if not all of them lie there.
    [[nodiscard]] std::optional<std::uint32_t> place_of(std::span<const std::uint8_t> bytes) const noexcept;
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_; }
    [[nodiscard]] bool is_unused() const;

private:
    SharedMemory memory_;
    const std::uint64_t meeting_;
    mutable std::mutex mutex_;                    // guards the members below
    std::map<std::size_t, std::size_t> free_;     // sizes of free runs, by offset; no two runs adjoin
    std::map<std::size_t, std::size_t> taken_{};  // sizes of buffers, by offset
};

// A client's pools: the one of the present meeting, and earlier ones as long as a buffer of theirs is in use. The
// daemon of a later meeting does not know an earlier pool, so bytes in it are copied as any others.
class Buffers {
public:
    // Adds the pool of a new meeting. Any thread may call it. This meeting has no pool here, or none in use.
    void add(std::unique_ptr<BufferPool> pool);
    // Takes a buffer. Returns null if the meeting's pool has no room, or there is no such pool.
    [[nodiscard]] std::uint8_t* take(std::size_t bytes, std::uint64_t meeting);
    // Gives a buffer back that the program holds (asserted).
    void give_back(const std::uint8_t* buffer);
    // Returns the offset of the bytes in the pool of this meeting, or nothing.
    [[nodiscard]] std::optional<std::uint32_t> place_of(std::span<const std::uint8_t> bytes,
                                                        std::uint64_t meeting) const noexcept;

private:
    // Needs the lock.
    [[nodiscard]] BufferPool* pool_of(std::uint64_t meeting) const noexcept;

    mutable std::mutex mutex_;  // guards the members below
    std::vector<std::unique_ptr<BufferPool>> pools_;
    std::atomic<std::size_t> count_{0};  // number of pools
};

}  // namespace cairn::fs
