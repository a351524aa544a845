// RecordingMedium: memory that knows which of its bytes are durable, and which states a crash may leave.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fs/medium/medium.hpp"
#include "fs/sim/recorded_line.hpp"
#include "lib/base/assert.hpp"
#include "lib/mem/region.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {

// A medium for one thread, with Granularity::CacheLine or Page. Asserts that addresses lie in its memory.
//
// It keeps an image of the durable bytes, and the lines that were flushed or copied but not fenced, as they were then.
// A crash compares the memory with that image, and so finds stores that were never flushed. That takes some 0.2 ms per
// MiB. If such a store overwrites another one, the older one is forgotten. So each step of a test flushes or crashes.
class RecordingMedium final : public fs::Medium {
public:
    using Image = std::vector<std::uint8_t>;
    static constexpr std::size_t kPageBytes = 4096;

    // Makes a medium of zeros. `bytes` are whole pages.
    static std::unique_ptr<RecordingMedium> of_zeros(std::size_t bytes,
                                                     fs::Granularity granularity = fs::Granularity::CacheLine) {
        return restart(Image(bytes), granularity);
    }
    // Makes the medium that a new process finds after a crash.
    static std::unique_ptr<RecordingMedium> restart(Image image,
                                                    fs::Granularity granularity = fs::Granularity::CacheLine) {
        CAIRN_ASSERT(!image.empty() && image.size() % kPageBytes == 0);
        Result<mem::Region> region =
            mem::Region::map(std::max(image.size(), mem::kHugePageBytes), mem::PageWish::NoHuge);
        CAIRN_ASSERT(region.ok());
        return std::unique_ptr<RecordingMedium>(
            new RecordingMedium(std::move(region).value(), std::move(image), granularity));
    }

    // Sets a function that is called at the beginning of each fence, or sync() of pages, before anything becomes
    // durable. A crash at that moment may lose all since the last fence. fences() counts the fence already.
    void set_on_fence(std::function<void()> on_fence) { on_fence_ = std::move(on_fence); }

    void flush(const void* at, std::size_t bytes) noexcept override {
        const std::size_t begin = offset_of(at, bytes);
        if (bytes != 0) {
            record(begin / fs::kLineBytes * fs::kLineBytes,
                   (begin + bytes + fs::kLineBytes - 1) / fs::kLineBytes * fs::kLineBytes);
        }
    }
    void fence() noexcept override {
        if (is_paged()) {
            return;
        }
        tell_fence();
        for (const RecordedLine& recorded : unfenced_) {
            std::memcpy(durable_.data() + recorded.offset(), recorded.bytes(), recorded.count());
        }
        unfenced_.clear();
    }
    // If a line is copied in part, the rest of the line is not flushed.
    void copy_nt(void* to, const void* from, std::size_t bytes) noexcept override {
        const std::size_t begin = offset_of(to, bytes);
        const auto* const source = static_cast<const std::uint8_t*>(from);
        CAIRN_ASSERT(source + bytes <= static_cast<std::uint8_t*>(to) ||
                     source >= static_cast<std::uint8_t*>(to) + bytes);
        if (bytes != 0) {
            std::memcpy(to, from, bytes);
            record(begin, begin + bytes);
        }
    }
    Status sync() noexcept override {
        if (refuses_syncs) {
            return Error{"the disk of a test is broken", "take another one"};
        }
        if (is_paged()) {
            tell_fence();
            std::copy(memory().begin(), memory().end(), durable_.begin());
        }
        return Nothing{};
    }
    bool refuses_syncs = false;  // whatever the granularity
    [[nodiscard]] std::string describe() const override { return "memory of a test of crashes"; }

    [[nodiscard]] std::uint64_t fences() const noexcept { return fences_; }
    [[nodiscard]] std::uint64_t flushed_lines() const noexcept { return flushed_lines_; }  // copied lines included
    [[nodiscard]] std::size_t unfenced_lines() const noexcept { return unfenced_.size(); }

    // Return the content if only the promised bytes reached the medium, and if all bytes did.
    [[nodiscard]] Image crash_none() const { return durable_; }
    [[nodiscard]] Image crash_all() const { return {memory().begin(), memory().end()}; }
    // Returns a content that a crash may leave. Each line has its durable, its flushed or its present content, as a
    // whole or word by word. The chances that a line is written and that it is torn are drawn for each crash. So some
    // crashes lose nearly all, and some nearly nothing.
    [[nodiscard]] Image crash(sim::Random& random) const {
        static constexpr std::array<std::uint32_t, 5> kLikely{20'000, 200'000, 500'000, 800'000, 980'000};
        const Chances chances{kLikely[random.below(kLikely.size())], random.below(2) == 0 ? 0U : 500'000U};
        Image image = durable_;
        for (const RecordedLine& recorded : unfenced_) {
            if (random.chance(chances.comes)) {
                arrive(image, recorded, chances, random);
            }
        }
        for (std::size_t page = 0; page < image.size(); page += kPageBytes) {
            if (std::memcmp(image.data() + page, memory().data() + page, kPageBytes) != 0) {
                evict(image, page, chances, random);
            }
        }
        return image;
    }

private:
    struct Chances {  // per million
        std::uint32_t comes;
        std::uint32_t torn;
    };

    RecordingMedium(mem::Region region, Image image, fs::Granularity granularity) noexcept
        : Medium(region.bytes().first(image.size()), granularity),
          region_(std::move(region)),
          durable_(std::move(image)) {
        std::memcpy(memory().data(), durable_.data(), durable_.size());
    }

    [[nodiscard]] std::size_t offset_of(const void* at, std::size_t bytes) const noexcept {
        const auto* const first = static_cast<const std::uint8_t*>(at);
        CAIRN_ASSERT(first >= memory().data() && bytes <= memory().size() &&
                     first <= memory().data() + (memory().size() - bytes));
        return static_cast<std::size_t>(first - memory().data());
    }

    void tell_fence() {
        ++fences_;
        if (on_fence_) {
            on_fence_();
        }
    }
    [[nodiscard]] bool is_paged() const noexcept { return granularity() == fs::Granularity::Page; }
    void record(std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end && !is_paged();) {
            const std::size_t next = std::min(end, (at / fs::kLineBytes + 1) * fs::kLineBytes);
            unfenced_.emplace_back(memory(), at, next);
            ++flushed_lines_;
            at = next;
        }
    }

    static void arrive(Image& image, const RecordedLine& recorded, const Chances& chances, sim::Random& random) {
        const bool torn = random.chance(chances.torn);
        for (std::size_t word = 0; word < fs::kLineBytes; word += fs::kWordBytes) {
            const auto [offset, count] = recorded.within(word);
            if (count != 0 && (!torn || random.below(2) == 0)) {
                std::memcpy(image.data() + offset, recorded.bytes() + (offset - recorded.offset()), count);
            }
        }
    }

    // Lines of a page that differ from the durable image may have been written back at any time.
    void evict(Image& image, std::size_t page, const Chances& chances, sim::Random& random) const {
        for (std::size_t line = page; line < page + kPageBytes; line += fs::kLineBytes) {
            if (std::memcmp(image.data() + line, memory().data() + line, fs::kLineBytes) != 0 &&
                random.chance(chances.comes)) {
                arrive(image, RecordedLine(memory(), line, line + fs::kLineBytes), chances, random);
            }
        }
    }

    mem::Region region_;
    Image durable_;
    std::vector<RecordedLine> unfenced_;  // oldest first
    std::function<void()> on_fence_;
    std::uint64_t fences_ = 0;
    std::uint64_t flushed_lines_ = 0;
};

}  // namespace cairn::fs
