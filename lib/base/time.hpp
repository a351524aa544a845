// Time as a value. Protocol code gets `now` as an argument and never reads a clock.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace cairn {

// A span of time in nanoseconds. It may be negative.
struct Duration {
    std::int64_t ns = 0;

    friend constexpr auto operator<=>(const Duration&, const Duration&) noexcept = default;
    constexpr Duration operator+(Duration other) const noexcept { return {ns + other.ns}; }
    constexpr Duration operator-(Duration other) const noexcept { return {ns - other.ns}; }
    constexpr Duration operator*(std::int64_t factor) const noexcept { return {ns * factor}; }
    constexpr Duration operator/(std::int64_t divisor) const noexcept { return {ns / divisor}; }
};

constexpr Duration nanoseconds(std::int64_t count) noexcept {
    return {count};
}
constexpr Duration microseconds(std::int64_t count) noexcept {
    return {count * 1'000};
}
constexpr Duration milliseconds(std::int64_t count) noexcept {
    return {count * 1'000'000};
}
constexpr Duration seconds(std::int64_t count) noexcept {
    return {count * 1'000'000'000};
}

// A point in time, in nanoseconds since an arbitrary epoch. Only differences have a meaning.
struct Instant {
    std::int64_t ns = 0;

    friend constexpr auto operator<=>(const Instant&, const Instant&) noexcept = default;
    constexpr Instant operator+(Duration span) const noexcept { return {ns + span.ns}; }
    constexpr Instant operator-(Duration span) const noexcept { return {ns - span.ns}; }
    constexpr Duration operator-(Instant other) const noexcept { return {ns - other.ns}; }

    // Returns "no deadline": later than every instant that a run can reach.
    static constexpr Instant never() noexcept { return {std::numeric_limits<std::int64_t>::max()}; }
};

}  // namespace cairn
