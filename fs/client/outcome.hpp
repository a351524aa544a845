// The result of an operation of the file system.
#pragma once

#include <utility>

#include "lib/base/result.hpp"

namespace cairn::fs {

struct Failure {
    int error = 0;  // errno
};

// A value, or an errno.
template <class T = Nothing>
class [[nodiscard]] Outcome {
public:
    Outcome() = default;
    Outcome(T what) : value(std::move(what)) {}                  // NOLINT(google-explicit-constructor)
    Outcome(Failure failure) noexcept : error(failure.error) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool ok() const noexcept { return error == 0; }

    int error = 0;  // 0, or an errno; then the value means nothing
    T value{};
};

}  // namespace cairn::fs
