// The end of a program that cannot do its work: one line, and this exit status.
#pragma once

#include <exception>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::app {

// The exit status of a program that cannot do its work.
constexpr int kBadUsage = 2;

// Prints "name: text" on stderr. Returns kBadUsage.
int complain(std::string_view name, std::string_view text) noexcept;

// Returns the exit status of `program`, which returns a Result<int>. Its error is printed as "name: cause; remedy".
template <class F>
int exit_status(std::string_view name, F program) noexcept {
    try {
        const Result<int> status = program();
        return status.ok() ? status.value() : complain(name, status.error().text());
    } catch (const std::exception& failure) {  // usually out of memory
        return complain(name, failure.what());
    }
}

}  // namespace cairn::app
