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

// What the daemon gave at one meeting. Any thread may use it.
class BufferPool {
public:
    BufferPool(SharedMemory memory, std::uint64_t meeting);

    // Returns null if there is no room for so many bytes. A buffer begins on a page.
    [[nodiscard]] std::uint8_t* take(std::size_t bytes);
    // Returns false if it was not taken from here.
    [[nodiscard]] bool give_back(const std::uint8_t* buffer);
    // Where bytes lie in the memory; nothing: not all of them lie there.
    [[nodiscard]] std::optional<std::uint32_t> place_of(std::span<const std::uint8_t> bytes) const noexcept;
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_; }
    [[nodiscard]] bool is_unused() const;

private:
    SharedMemory memory_;
    const std::uint64_t meeting_;
    mutable std::mutex mutex_;                    // guards what follows
    std::map<std::size_t, std::size_t> free_;     // bytes, by where they begin; never two side by side
    std::map<std::size_t, std::size_t> taken_{};  // likewise
};

// Of a client: the pool of the present meeting, and those of earlier ones as long as a buffer of theirs is in use. The
// daemon of another meeting does not know those: their bytes are copied, as any others.
class Buffers {
public:
    // Any thread. No pool of this meeting is there, or it is not used.
    void add(std::unique_ptr<BufferPool> pool);
    // Returns null if the pool of this meeting has no room, or there is none.
    [[nodiscard]] std::uint8_t* take(std::size_t bytes, std::uint64_t meeting);
    // The buffer is the program's (asserted).
    void give_back(const std::uint8_t* buffer);
    // Where bytes lie in the pool of this meeting.
    [[nodiscard]] std::optional<std::uint32_t> place_of(std::span<const std::uint8_t> bytes,
                                                        std::uint64_t meeting) const noexcept;

private:
    // The lock is held.
    [[nodiscard]] BufferPool* pool_of(std::uint64_t meeting) const noexcept;

    mutable std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<BufferPool>> pools_;
    std::atomic<std::size_t> count_{0};  // pools
};

}  // namespace cairn::fs
