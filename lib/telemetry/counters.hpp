// Counter sets declared by one list each: enumerator, name, and what a non-zero value tells the operator.
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
    std::string_view name;     // lower case, digits and underscores: goes into JSON and exporters as it is
    std::string_view meaning;  // half a sentence for the operator: what a non-zero value means
};

// Refused at compile time where a list is declared: a name that would need escaping, a missing meaning.
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
// CounterSet<Set> finds the texts by argument-dependent lookup: use it in Set's own namespace.
#define CAIRN_DECLARE_COUNTERS(Set, LIST)                                                         \
    enum class Set : std::uint8_t { LIST(CAIRN_COUNTER_ENUMERATOR) Count };                       \
    [[nodiscard]] constexpr auto counter_texts(Set) noexcept {                                    \
        return std::array<::cairn::telemetry::CounterText, static_cast<std::size_t>(Set::Count)>{ \
            {LIST(CAIRN_COUNTER_TEXT)}};                                                          \
    }                                                                                             \
    static_assert(::cairn::telemetry::well_formed(counter_texts(Set::Count)), "name or meaning of " #Set)

template <class Set>
constexpr std::size_t kCounters = static_cast<std::size_t>(Set::Count);

// Values of a set at one moment; sets of several workers are added up here, rates are differences.
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
    // What was counted between `earlier` and this one, by the same sets.
    [[nodiscard]] CounterSnapshot since(const CounterSnapshot& earlier) const noexcept {
        CounterSnapshot difference;
        for (std::size_t i = 0; i < values.size(); ++i) {
            difference.values[i] = values[i] - earlier.values[i];
        }
        return difference;
    }
    [[nodiscard]] friend bool operator==(const CounterSnapshot&, const CounterSnapshot&) noexcept = default;
};

// One thread's counters: one thread counts, any thread may read at any time and sees each word whole, though
// not all words of one moment. Counting is a load, an add and a store: no locked instruction.
template <class Set>
class alignas(64) CounterSet {
public:
    void count(Set which, std::uint64_t amount = 1) noexcept {
        std::atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(which)];
        word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t of(Set which) const noexcept {
        return words_[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t total() const noexcept { return snapshot().total(); }
    [[nodiscard]] CounterSnapshot<Set> snapshot() const noexcept {
        CounterSnapshot<Set> taken;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            taken.values[i] = words_[i].load(std::memory_order_relaxed);
        }
        return taken;
    }

private:
    std::array<std::atomic<std::uint64_t>, kCounters<Set>> words_{};
};

// The non-zero ones, a line each: "  roce_bad_icrc  12  packets damaged on the way ...", names and values
// in columns. Empty when all are zero. `texts` and `values` have the same length.
[[nodiscard]] std::string text_of(std::span<const CounterText> texts, std::span<const std::uint64_t> values);

// All of them, zero or not: {"roce_bad_icrc":12,"roce_too_short":0}.
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
