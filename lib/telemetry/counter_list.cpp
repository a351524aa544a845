#include "lib/telemetry/counter_list.hpp"

#include <array>
#include <string_view>
#include <unordered_map>

#include "lib/base/assert.hpp"

namespace cairn::telemetry {

CounterList& CounterList::add(const CounterText& text, const Counter& counter) {
    CAIRN_ASSERT(well_formed(std::array{text}));
    entries_.push_back({text, &counter});
    return *this;
}

CounterList& CounterList::add(const CounterList& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
    return *this;
}

CounterReading CounterList::read() const {
    CounterReading now;
    std::unordered_map<std::string_view, std::size_t> places;
    for (const Entry& entry : entries_) {
        const auto [place, is_first] = places.try_emplace(entry.text.name, now.texts.size());
        if (is_first) {
            now.texts.push_back(entry.text);
            now.values.push_back(0);
        }
        now.values[place->second] += *entry.counter;
    }
    return now;
}

std::string CounterList::text() const {
    const CounterReading now = read();
    return text_of(now.texts, now.values);
}

}  // namespace cairn::telemetry
