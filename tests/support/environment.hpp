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

}  // namespace cairn::test
