// A log-linear histogram of fixed memory. Recording takes a few nanoseconds. A percentile exceeds the true value by at
// most 1/64 of it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cairn::telemetry {

// Counts values of any unit. Each value below 64 has a bucket of its own. Each further power of two is cut into 64
// buckets of equal width. So a bucket is at most 1/64 of its lowest value wide. A percentile is the highest value of
// its bucket, but at most the recorded maximum. So it is never below the true value, and above it by at most 1/64. The
// size is 30 KB, of which a run touches the few lines that its values fall in. One thread records and reads. Other
// threads merge after the recorder has stopped.
class Histogram {
public:
    static constexpr unsigned kStepBits = 6;
    static constexpr std::uint64_t kSteps = std::uint64_t{1} << kStepBits;
    static constexpr std::size_t kBuckets = kSteps + (64U - kStepBits) * kSteps;

    void record(std::uint64_t value) noexcept {
        ++buckets_[bucket_of(value)];
        ++count_;
        sum_ += value;
        max_ = value > max_ ? value : max_;
        min_ = value < min_ ? value : min_;
    }

    void merge(const Histogram& other) noexcept;
    void clear() noexcept { *this = Histogram{}; }

    // Returns the value that the fraction `q` of all values does not exceed (nearest rank, with the error above). `q`
    // is cut to [0, 1]: 0 gives the minimum, 1 the maximum. Returns 0 if nothing was recorded.
    [[nodiscard]] std::uint64_t percentile(double q) const noexcept;

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
    [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
    [[nodiscard]] double mean() const noexcept {
        return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
    }

    // bucket_of() returns the bucket that counts a value, highest_in() the highest value that a bucket counts. They are
    // public for exporters and tests.
    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
        if (value < kSteps) {
            return static_cast<std::size_t>(value);
        }
        const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1U - kStepBits;
        return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) << kStepBits) + (value >> shift));
    }
    [[nodiscard]] static constexpr std::uint64_t highest_in(std::size_t bucket) noexcept {
        if (bucket < kSteps) {
            return bucket;
        }
        const std::uint64_t shift = (bucket >> kStepBits) - 1U;
        const std::uint64_t step = kSteps + (bucket & (kSteps - 1U));
        return (step << shift) + ((std::uint64_t{1} << shift) - 1U);
    }

private:
    std::array<std::uint64_t, kBuckets> buckets_{};
    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;  // wraps only after 2^64 units; a year of nanoseconds is 2^55
    std::uint64_t max_ = 0;
    std::uint64_t min_ = ~std::uint64_t{0};
};

static_assert(Histogram::bucket_of(~std::uint64_t{0}) == Histogram::kBuckets - 1);
static_assert(Histogram::highest_in(Histogram::kBuckets - 1) == ~std::uint64_t{0});

}  // namespace cairn::telemetry
