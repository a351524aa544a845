// Assertions that stay on in release builds: they state what only our own bug can break.
// A peer's bad packet is a verdict and a counter, a bad environment is a Result; neither ends here.
#pragma once

namespace cairn {

// Writes one line (expression, file, line, errno-free) to stderr and aborts. Never returns.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace cairn

// An expression, so that asserting nests nothing deeper.
#define CAIRN_ASSERT(condition)                                               \
    (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                       : ::cairn::assertion_failed(#condition, __FILE__, __LINE__))
