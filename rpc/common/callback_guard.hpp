// Asserts that callbacks of an endpoint do not destroy that endpoint: it would go on in memory that is gone.
#pragma once

#include <cstdint>

#include "lib/base/assert.hpp"

namespace cairn::rpc {

// Counts how deep an endpoint is in functions that run handlers, completions and other callbacks.
class CallbackGuard {
public:
    class [[nodiscard]] Scope {
    public:
        explicit Scope(std::uint32_t& depth) noexcept : depth_(depth) { ++depth_; }
        ~Scope() { --depth_; }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        std::uint32_t& depth_;
    };

    // Enters a function that may run callbacks. The function keeps the scope until it returns.
    Scope enter() noexcept { return Scope(depth_); }
    // Asserts that no callback is running. The endpoint's destructor calls it first.
    void assert_outside() const noexcept { CAIRN_ASSERT(depth_ == 0); }

private:
    std::uint32_t depth_ = 0;
};

}  // namespace cairn::rpc
