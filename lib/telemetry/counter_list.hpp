// A list of counters and their texts. Owners of counters hand it to the code that shows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/telemetry/counters.hpp"

namespace cairn::telemetry {

// The values of counters at one moment. Each name occurs once.
struct CounterReading {
    std::vector<CounterText> texts;
    std::vector<std::uint64_t> values;  // as many as texts
};

// Refers to counters and to the characters of their texts, which are literals. Both outlive the list. One thread uses a
// list. Other threads may count meanwhile.
class CounterList {
public:
    // Appends the counters of a set, in its order.
    template <class Set>
    CounterList& add(const CounterSet<Set>& set) {
        const auto texts = counter_texts(Set{});
        for (std::size_t i = 0; i < texts.size(); ++i) {
            add(texts[i], set.counters()[i]);
        }
        return *this;
    }
    // Appends a counter on its own. Its text is well formed (asserted).
    CounterList& add(const CounterText& text, const Counter& counter);
    CounterList& add(const CounterList& other);

    // Reads all counters. Counters of one name are added up, in the place of the first, with its meaning.
    [[nodiscard]] CounterReading read() const;
    // Returns a line for each counter that is not zero, as text_of() does.
    [[nodiscard]] std::string text() const;

private:
    struct Entry {
        CounterText text;
        const Counter* counter;
    };

    std::vector<Entry> entries_;
};

}  // namespace cairn::telemetry
