#include "lib/telemetry/counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lib/base/assert.hpp"

namespace cairn::telemetry {

std::string text_of(std::span<const CounterText> texts, std::span<const std::uint64_t> values) {
    CAIRN_ASSERT(texts.size() == values.size());
    std::size_t name_width = 0;
    std::size_t value_width = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (values[i] != 0) {
            name_width = std::max(name_width, texts[i].name.size());
            value_width = std::max(value_width, fmt::formatted_size("{}", values[i]));
        }
    }
    std::string out;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (values[i] != 0) {
            fmt::format_to(std::back_inserter(out), "  {:<{}}  {:>{}}  {}\n", texts[i].name, name_width, values[i],
                           value_width, texts[i].meaning);
        }
    }
    return out;
}

std::string json_of(std::span<const CounterText> texts, std::span<const std::uint64_t> values) {
    CAIRN_ASSERT(texts.size() == values.size());
    std::string out = "{";
    for (std::size_t i = 0; i < texts.size(); ++i) {
        fmt::format_to(std::back_inserter(out), "{}\"{}\":{}", i == 0 ? "" : ",", texts[i].name, values[i]);
    }
    out += '}';
    return out;
}

}  // namespace cairn::telemetry
