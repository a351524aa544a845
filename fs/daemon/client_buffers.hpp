// ClientBuffers: memory for a client's buffers, as all shards of its daemon see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fs/channel/shared_memory.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

// The memory of one session. Each channel of the client keeps it, so it stays as long as a call may name it.
class ClientBuffers {
public:
    // Makes the memory. Called once (asserted), on the sessions' thread. Errors: see SharedMemory.
    Status make(std::size_t bytes) {
        CAIRN_ASSERT(!made_.has_value());
        Result<SharedMemory> made = SharedMemory::create(bytes, SharedMemory::Pages::AsTouched);
        if (!made.ok()) {
            return made.error();
        }
        made_.emplace(std::move(made).value());
        seen_.store(&*made_, std::memory_order_release);
        return Nothing{};
    }
    [[nodiscard]] bool is_made() const noexcept { return made_.has_value(); }
    // Returns the descriptor. The memory was made.
    [[nodiscard]] int fd() const noexcept { return made_->fd(); }
    // Returns the memory, or nothing if it was not made. Any thread may call it.
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept {
        const SharedMemory* const seen = seen_.load(std::memory_order_acquire);  // pairs with make()
        return seen == nullptr ? std::span<std::uint8_t>{} : seen->bytes();
    }

private:
    std::optional<SharedMemory> made_;
    std::atomic<const SharedMemory*> seen_{nullptr};
};

}  // namespace cairn::fs
