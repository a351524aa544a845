#include "fs/channel/segment.hpp"

#include <new>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSlotBytes = sizeof(SlotHead) + kRequestBytes + kAnswerBytes;

std::size_t round_up(std::size_t bytes) noexcept {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Returns where the data begin, on a page.
std::size_t data_at(const ChannelShape& shape) noexcept {
    return round_up(sizeof(SegmentHead) + shape.slots * kSlotBytes);
}

}  // namespace

std::size_t Segment::bytes_of(const ChannelShape& shape) noexcept {
    return data_at(shape) + std::size_t{shape.slots} * shape.data_bytes;
}

Result<Segment> Segment::create(const ChannelShape& shape) {
    CAIRN_ASSERT(shape.is_valid());
    Result<SharedMemory> shared = SharedMemory::create(bytes_of(shape), SharedMemory::Pages::AtOnce);
    if (!shared.ok()) {
        return shared.error();
    }
    Segment segment(std::move(shared).value(), shape);
    new (segment.memory().data()) SegmentHead;
    for (std::uint32_t slot = 0; slot != shape.slots; ++slot) {
        new (&segment.slot(slot)) SlotHead;
    }
    return segment;
}

Result<Segment> Segment::map(int fd, const ChannelShape& shape) {
    Result<SharedMemory> shared = SharedMemory::map(fd, bytes_of(shape), SharedMemory::Pages::AtOnce);
    if (!shared.ok()) {
        return shared.error();
    }
    return Segment(std::move(shared).value(), shape);
}

SlotHead& Segment::slot(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return *reinterpret_cast<SlotHead*>(memory().data() + sizeof(SegmentHead) + slot * kSlotBytes);
}

std::span<std::uint8_t> Segment::request(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory().subspan(sizeof(SegmentHead) + slot * kSlotBytes + sizeof(SlotHead), kRequestBytes);
}

std::span<std::uint8_t> Segment::answer(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory().subspan(sizeof(SegmentHead) + slot * kSlotBytes + sizeof(SlotHead) + kRequestBytes, kAnswerBytes);
}

std::span<std::uint8_t> Segment::data(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory().subspan(data_at(shape_) + std::size_t{slot} * shape_.data_bytes, shape_.data_bytes);
}

}  // namespace cairn::fs
