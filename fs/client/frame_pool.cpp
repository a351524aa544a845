#include "fs/client/frame_pool.hpp"

#include <array>
#include <new>
#include <utility>

namespace cairn::fs {

namespace {

constexpr std::size_t kSizes = FramePool::kKeptBytes / FramePool::kStepBytes;

struct KeptFrame {
    KeptFrame* next;
};

struct KeptFrames {
    ~KeptFrames() {
        for (KeptFrame*& first : by_size) {
            while (first != nullptr) {
                ::operator delete(std::exchange(first, first->next));
            }
        }
    }
    std::array<KeptFrame*, kSizes> by_size{};
};

KeptFrames& kept_frames() noexcept {
    static thread_local KeptFrames frames;
    return frames;
}

}  // namespace

void* FramePool::take(std::size_t bytes) noexcept {
    const std::size_t size = (bytes - 1) / kStepBytes;
    if (size >= kSizes) {
        return ::operator new(bytes);
    }
    KeptFrame*& first = kept_frames().by_size[size];
    if (first == nullptr) {
        return ::operator new((size + 1) * kStepBytes);
    }
    return std::exchange(first, first->next);
}

void FramePool::give(void* frame, std::size_t bytes) noexcept {
    const std::size_t size = (bytes - 1) / kStepBytes;
    if (size >= kSizes) {
        ::operator delete(frame);
        return;
    }
    KeptFrame*& first = kept_frames().by_size[size];
    first = new (frame) KeptFrame{first};
}

}  // namespace cairn::fs
