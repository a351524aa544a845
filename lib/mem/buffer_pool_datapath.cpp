#include "lib/mem/buffer_pool.hpp"

#include <bit>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::mem {

namespace {

constexpr std::uint32_t class_for(std::size_t bytes) noexcept {
    if (bytes <= BufferPool::kSmallestBytes) {
        return 0;
    }
    return static_cast<std::uint32_t>(std::bit_width((bytes - 1) / BufferPool::kSmallestBytes));
}
static_assert(class_for(64) == 0 && class_for(65) == 1 && class_for(128) == 1 && class_for(129) == 2);
static_assert(class_for(BufferPool::kLargestBytes) == BufferPool::kClasses - 1);

}  // namespace

Buffer BufferPool::try_allocate(std::size_t bytes) noexcept {
    if (bytes > kLargestBytes) {
        return {};
    }
    const std::uint32_t size_class = class_for(bytes);
    KeptBlocks& kept = kept_[size_class];
    if (kept.count != 0) {
        --kept.count;
        return lend(kept.units[kept.count], size_class);
    }
    Unit unit = take_split(size_class);
    if (unit == kNone && merge_kept()) {
        unit = take_split(size_class);
    }
    return unit == kNone ? Buffer{} : lend(unit, size_class);
}

void BufferPool::release(Buffer buffer) noexcept {
    if (!buffer.valid()) {
        return;
    }
    const auto offset = static_cast<std::size_t>(buffer.data - region_.data());
    CAIRN_ASSERT(offset % kSmallestBytes == 0 && offset / kSmallestBytes < tags_.size());
    const auto unit = static_cast<Unit>(offset / kSmallestBytes);
    const Tag size_class = tags_[unit];
    CAIRN_ASSERT(size_class < kClasses);  // else it is free already, or never was a buffer
    CAIRN_ASSERT(live_buffers_ > 0);
    --live_buffers_;
    live_bytes_ -= std::uint64_t{kSmallestBytes} << size_class;

    KeptBlocks& kept = kept_[size_class];
    if (kept.count < kKept) {
        tags_[unit] = static_cast<Tag>(size_class | kKeptFlag);
        kept.units[kept.count] = unit;
        ++kept.count;
    } else {
        give_merged(unit, size_class);
    }
}

Buffer BufferPool::lend(Unit unit, std::uint32_t size_class) noexcept {
    tags_[unit] = static_cast<Tag>(size_class);
    ++live_buffers_;
    const std::uint32_t capacity = kSmallestBytes << size_class;
    live_bytes_ += capacity;
    return {address(unit), capacity};
}

// Returns a block of the class from the smallest free one that holds it. The halves that are split off become free.
BufferPool::Unit BufferPool::take_split(std::uint32_t size_class) noexcept {
    std::uint32_t from = size_class;
    while (from < kClasses && free_[from] == kNone) {
        ++from;
    }
    if (from == kClasses) {
        return kNone;
    }
    const Unit unit = free_[from];
    unlink_free(unit, from);
    while (from > size_class) {
        --from;
        push_free(unit + (Unit{1} << from), from);
    }
    return unit;
}

// Frees a block, merged with its buddy if the buddy is free too, and so on upwards.
void BufferPool::give_merged(Unit unit, std::uint32_t size_class) noexcept {
    while (size_class + 1 < kClasses) {
        const Unit buddy = unit ^ (Unit{1} << size_class);
        if (buddy >= tags_.size() || tags_[buddy] != static_cast<Tag>(size_class | kFreeFlag)) {
            break;
        }
        unlink_free(buddy, size_class);
        tags_[unit] = kInside;
        tags_[buddy] = kInside;
        unit &= ~(Unit{1} << size_class);
        ++size_class;
    }
    push_free(unit, size_class);
}

bool BufferPool::merge_kept() noexcept {
    bool any = false;
    for (std::uint32_t size_class = 0; size_class < kClasses; ++size_class) {
        KeptBlocks& kept = kept_[size_class];
        any = any || kept.count != 0;
        while (kept.count != 0) {
            --kept.count;
            give_merged(kept.units[kept.count], size_class);
        }
    }
    return any;
}

std::uint8_t* BufferPool::address(Unit unit) const noexcept {
    return region_.data() + static_cast<std::size_t>(unit) * kSmallestBytes;
}

BufferPool::Links BufferPool::links(Unit unit) const noexcept {
    Links found;
    std::memcpy(&found, address(unit), sizeof(found));
    return found;
}

void BufferPool::set_links(Unit unit, Links links) noexcept {
    std::memcpy(address(unit), &links, sizeof(links));
}

void BufferPool::push_free(Unit unit, std::uint32_t size_class) noexcept {
    const Unit head = free_[size_class];
    set_links(unit, {kNone, head});
    if (head != kNone) {
        set_links(head, {unit, links(head).next});
    }
    free_[size_class] = unit;
    tags_[unit] = static_cast<Tag>(size_class | kFreeFlag);
}

void BufferPool::unlink_free(Unit unit, std::uint32_t size_class) noexcept {
    const Links at = links(unit);
    if (at.previous == kNone) {
        CAIRN_ASSERT(free_[size_class] == unit);
        free_[size_class] = at.next;
    } else {
        set_links(at.previous, {links(at.previous).previous, at.next});
    }
    if (at.next != kNone) {
        set_links(at.next, {at.previous, links(at.next).next});
    }
}

}  // namespace cairn::mem
