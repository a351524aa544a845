// Memory that a client and a shard share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "fs/channel/shared_memory.hpp"
#include "lib/base/doorbell.hpp"
#include "lib/base/fetch.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// The size of a channel. The daemon chooses and announces it; both ends map that much.
struct ChannelShape {
    static constexpr std::uint32_t kMostSlots = 64;
    static constexpr std::uint32_t kMostDataBytes = 64U << 20U;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31U;  // data of all slots together

    std::uint32_t slots = 8;
    std::uint32_t data_bytes = 2U << 20U;  // for each slot, whole pages

    [[nodiscard]] bool is_valid() const noexcept {
        return slots != 0 && slots <= kMostSlots && data_bytes != 0 && data_bytes <= kMostDataBytes &&
               data_bytes % 4096 == 0 && std::uint64_t{slots} * data_bytes <= kMostBytes;
    }
    friend bool operator==(const ChannelShape&, const ChannelShape&) noexcept = default;
};

constexpr std::uint32_t kRequestBytes = 4608;  // a head, and the longest link's target or two names
constexpr std::uint32_t kAnswerBytes = 4608;   // for an answer

// The head of a segment. The words of each side have cache lines of their own.
struct alignas(kCacheLineBytes) SegmentHead {
    std::atomic<std::uint64_t> pending{0};                  // a bit for each slot with a new request
    alignas(kCacheLineBytes) DoorbellWord shard_sleeps{};   // wakes the shard; the client has its descriptor
    alignas(kCacheLineBytes) DoorbellWord client_sleeps{};  // wakes the client, which waits on this word (futex)
};

struct alignas(kCacheLineBytes) SlotHead {
    std::atomic<std::uint32_t> asked{0};
    std::uint32_t request_bytes = 0;
    alignas(kCacheLineBytes) std::atomic<std::uint32_t> answered{0};
    std::uint32_t answer_bytes = 0;
};
static_assert(sizeof(SlotHead) == 2 * kCacheLineBytes && std::atomic<std::uint64_t>::is_always_lock_free);

// A mapping of a segment. The memory stays where it is until the object ends.
class Segment {
public:
    // Makes a segment. It is sealed: its length never changes. `shape` is valid (asserted). Errors: no memory.
    static Result<Segment> create(const ChannelShape& shape);
    // Maps a segment that a daemon made, and takes its descriptor. Errors: the segment has another length, or can be
    // cut.
    static Result<Segment> map(int fd, const ChannelShape& shape);

    [[nodiscard]] const ChannelShape& shape() const noexcept { return shape_; }
    // Returns the descriptor, which belongs to the segment.
    [[nodiscard]] int fd() const noexcept { return shared_.fd(); }
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return shared_.bytes(); }
    [[nodiscard]] SegmentHead& head() const noexcept { return *reinterpret_cast<SegmentHead*>(memory().data()); }
    // In the functions below `slot` is less than the shape's number of slots (asserted).
    [[nodiscard]] SlotHead& slot(std::uint32_t slot) const noexcept;
    [[nodiscard]] std::span<std::uint8_t> request(std::uint32_t slot) const noexcept;
    [[nodiscard]] std::span<std::uint8_t> answer(std::uint32_t slot) const noexcept;
    [[nodiscard]] std::span<std::uint8_t> data(std::uint32_t slot) const noexcept;
    [[nodiscard]] static std::size_t bytes_of(const ChannelShape& shape) noexcept;

private:
    Segment(SharedMemory shared, const ChannelShape& shape) noexcept : shared_(std::move(shared)), shape_(shape) {}

    SharedMemory shared_;
    ChannelShape shape_;
};

}  // namespace cairn::fs
