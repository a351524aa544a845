// Assertions that stay on in release builds. An assertion states a condition that only a bug of this program can break.
// A bad packet from a peer gives a verdict and a counter; a bad environment gives a Result. Neither ends here.
#pragma once

namespace cairn {

// Writes one line (expression, file, line) to stderr and aborts. Never returns.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace cairn

// The macro expands to an expression, so that it adds no level of nesting.
#define CAIRN_ASSERT(condition)                                               \
    (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                       : ::cairn::assertion_failed(#condition, __FILE__, __LINE__))
