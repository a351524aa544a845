// Numbers that a test's user may set. Any other word ends the program: a test that then runs nothing would pass.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>

namespace cairn::test {

// Returns the value of an environment variable, or `otherwise` if it is not set. It must lie in [least, most].
inline std::uint64_t number_from(const char* name, std::uint64_t otherwise, std::uint64_t least,
                                 std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    const char* const set = std::getenv(name);
    const std::string_view text = set != nullptr ? set : "";
    if (text.empty()) {
        return otherwise;
    }
    std::uint64_t number = 0;
    const auto [behind, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || behind != text.data() + text.size() || number < least || number > most) {
        std::fprintf(stderr, "%s=%s: give a number from %llu to %llu\n", name, set,
                     static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
        std::exit(2);
    }
    return number;
}

// Returns the seed of the first history; later seeds count up from it. scripts/test draws it for --full and --soak.
inline std::uint64_t first_seed() {
    return number_from("SIM_SEED", 1, 0, std::numeric_limits<std::uint64_t>::max() / 2);
}

// Returns how many histories a swarm runs: `usual`, unless SIM_RUNS says otherwise.
inline std::uint64_t histories(std::uint64_t usual) {
    return number_from("SIM_RUNS", usual, 1, std::numeric_limits<std::uint64_t>::max() / 2);
}
// As histories(usual), but all of `thorough` if SIM_THOROUGH is set (faults are planted).
inline std::uint64_t histories(std::uint64_t usual, std::uint64_t thorough) {
    return histories(std::getenv("SIM_THOROUGH") != nullptr ? thorough : usual);
}

}  // namespace cairn::test
