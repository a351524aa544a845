// Numbers that a test's user may set.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace cairn::test {

// Of the environment variable, if it is set.
inline std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The seed of the first history. scripts/test draws it for --full and --soak.
inline std::uint64_t first_seed() {
    return number_from("SIM_SEED", 1);
}

// How many histories a swarm lives through: `usual` ones, all of `thorough` where SIM_THOROUGH is set (faults are
// planted).
inline std::uint64_t histories(std::uint64_t usual, std::uint64_t thorough) {
    return number_from("SIM_RUNS", std::getenv("SIM_THOROUGH") != nullptr ? thorough : usual);
}

}  // namespace cairn::test
