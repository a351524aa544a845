// The input of a fuzzer, read to its end; then zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace cairn::test {

// Aborts unless a condition holds that must hold for any input.
inline void require(bool holds, int line = __builtin_LINE()) {
    if (!holds) {
        std::fprintf(stderr, "line %d of the target does not hold\n", line);
        std::abort();
    }
}

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
    [[nodiscard]] bool empty() const { return rest_.empty(); }
    template <class Value>
    Value take() {
        Value value{};
        const std::size_t count = std::min(sizeof(value), rest_.size());
        if (count != 0) {
            std::memcpy(&value, rest_.data(), count);
        }
        rest_ = rest_.subspan(count);
        return value;
    }
    std::uint8_t byte() { return take<std::uint8_t>(); }
    std::vector<std::uint8_t> bytes(std::size_t most) {
        const auto taken = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return {taken.begin(), taken.end()};
    }

private:
    std::span<const std::uint8_t> rest_;
};

}  // namespace cairn::test
