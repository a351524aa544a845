// Sets of counters. One list declares a set: enumerator, name, and what a non-zero value tells the operator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn::telemetry {

struct CounterText {
    std::string_view name;     // lower case, digits and underscores; JSON and exporters use it as it is
    std::string_view meaning;  // half a sentence for the operator: what a non-zero value means
};

// Refuses, at compile time, a name that would need escaping and a meaning that is missing.
template <std::size_t kCount>
constexpr bool well_formed(const std::array<CounterText, kCount>& texts) noexcept {
    for (const CounterText& text : texts) {
        if (text.name.empty() || text.meaning.empty()) {
            return false;
        }
        for (const char letter : text.name) {
            if (!((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_')) {
                return false;
            }
        }
    }
    return true;
}

#define CAIRN_COUNTER_ENUMERATOR(enumerator, name, meaning) enumerator,
#define CAIRN_COUNTER_TEXT(enumerator, name, meaning) ::cairn::telemetry::CounterText{name, meaning},

// Declares `enum class Set` and its texts from LIST(X), whose entries are X(enumerator, "name", "meaning").
// CounterSet<Set> finds the texts by argument-dependent lookup, so the macro is used in the namespace of Set.
#define CAIRN_DECLARE_COUNTERS(Set, LIST)                                                         \
    enum class Set : std::uint8_t { LIST(CAIRN_COUNTER_ENUMERATOR) Count };                       \
    [[nodiscard]] constexpr auto counter_texts(Set) noexcept {                                    \
        return std::array<::cairn::telemetry::CounterText, static_cast<std::size_t>(Set::Count)>{ \
            {LIST(CAIRN_COUNTER_TEXT)}};                                                          \
    }                                                                                             \
    static_assert(::cairn::telemetry::well_formed(counter_texts(Set::Count)), "name or meaning of " #Set)

template <class Set>
constexpr std::size_t kCounters = static_cast<std::size_t>(Set::Count);

// A counter on its own: one thread counts, any thread may read at any time. Counting takes no locked instruction.
class Counter {
public:
    Counter& operator+=(std::uint64_t amount) noexcept {
        word_.store(word_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
        return *this;
    }
    Counter& operator++() noexcept { return *this += 1; }
    // Counts for a counter that several threads share. All of them count by this function. It takes a locked
    // instruction.
    void add_shared(std::uint64_t amount) noexcept { word_.fetch_add(amount, std::memory_order_relaxed); }
    // Returns the value.
    operator std::uint64_t() const noexcept { return word_.load(std::memory_order_relaxed); }  // NOLINT

private:
    std::atomic<std::uint64_t> word_{0};
};

// Values of a set at one moment. Sets of several workers are added up here; rates are differences.
template <class Set>
struct CounterSnapshot {
    std::array<std::uint64_t, kCounters<Set>> values{};

    [[nodiscard]] std::uint64_t of(Set which) const noexcept { return values[static_cast<std::size_t>(which)]; }
    [[nodiscard]] std::uint64_t total() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t value : values) {
            sum += value;
        }
        return sum;
    }
    CounterSnapshot& operator+=(const CounterSnapshot& other) noexcept {
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] += other.values[i];
        }
        return *this;
    }
    // Returns the counts of the same sets between `earlier` and this snapshot.
    [[nodiscard]] CounterSnapshot since(const CounterSnapshot& earlier) const noexcept {
        CounterSnapshot difference;
        for (std::size_t i = 0; i < values.size(); ++i) {
            difference.values[i] = values[i] - earlier.values[i];
        }
        return difference;
    }
    [[nodiscard]] friend bool operator==(const CounterSnapshot&, const CounterSnapshot&) noexcept = default;
};

// The counters of one thread. That thread counts; any thread may read at any time. A reader sees each word whole, but
// not all words of one moment. Counting is a load, an add and a store, without a locked instruction.
template <class Set>
class alignas(64) CounterSet {
public:
    void count(Set which, std::uint64_t amount = 1) noexcept { counters_[static_cast<std::size_t>(which)] += amount; }
    // Counts for a set that several threads share. All of them count by this function. It takes a locked instruction.
    void count_shared(Set which) noexcept { counters_[static_cast<std::size_t>(which)].add_shared(1); }

    [[nodiscard]] std::uint64_t of(Set which) const noexcept { return counters_[static_cast<std::size_t>(which)]; }
    [[nodiscard]] std::uint64_t total() const noexcept { return snapshot().total(); }
    [[nodiscard]] CounterSnapshot<Set> snapshot() const noexcept {
        CounterSnapshot<Set> taken;
        for (std::size_t i = 0; i < counters_.size(); ++i) {
            taken.values[i] = counters_[i];
        }
        return taken;
    }
    // Returns the counters, in the order of the set.
    [[nodiscard]] std::span<const Counter, kCounters<Set>> counters() const noexcept { return counters_; }

private:
    std::array<Counter, kCounters<Set>> counters_{};
};

// Returns the counters that are not zero, a line each: " roce_bad_icrc 12 packets damaged on the way ...", with names
// and values in columns. Returns an empty text if all are zero. `texts` and `values` have the same length.
[[nodiscard]] std::string text_of(std::span<const CounterText> texts, std::span<const std::uint64_t> values);

// Returns all counters, including zeros: {"roce_bad_icrc":12,"roce_too_short":0}.
[[nodiscard]] std::string json_of(std::span<const CounterText> texts, std::span<const std::uint64_t> values);

template <class Set>
[[nodiscard]] std::string text_of(const CounterSnapshot<Set>& snapshot) {
    return text_of(counter_texts(Set{}), snapshot.values);
}
template <class Set>
[[nodiscard]] std::string json_of(const CounterSnapshot<Set>& snapshot) {
    return json_of(counter_texts(Set{}), snapshot.values);
}

}  // namespace cairn::telemetry
