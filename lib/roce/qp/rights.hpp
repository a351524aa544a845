// Rights to memory, and what a window over it asks for (IBTA vol. 1, 10.6.3, 10.6.6.2).
#pragma once

#include <cstdint>

#include "lib/base/types.hpp"

namespace cairn::roce {

// What a region allows besides reading by its owner.
enum class Right : std::uint8_t {
    LocalWrite = 1,
    RemoteWrite = 2,
    RemoteRead = 4,
    RemoteAtomic = 8,
    RemoteInvalidate = 16,  // invalidation ends it: a SEND with Invalidate, or our own LocalInvalidate
    BindWindow = 32,        // windows may be bound to it
    FlushGlobal = 64,       // a FLUSH may ask that what was written is seen by all
    FlushPersistent = 128,  // or that it is safe from power failures
};

// A set of rights; a type of its own, so that no flag meets another kind of flag.
class Rights {
public:
    constexpr Rights() noexcept = default;
    // NOLINTNEXTLINE(google-explicit-constructor): one right is a set
    constexpr Rights(Right one) noexcept : bits_(static_cast<std::uint8_t>(one)) {}

    [[nodiscard]] constexpr Rights with(Rights others) const noexcept {
        Rights both;
        both.bits_ = static_cast<std::uint8_t>(bits_ | others.bits_);
        return both;
    }
    [[nodiscard]] constexpr Rights within(Rights others) const noexcept {
        Rights both;
        both.bits_ = static_cast<std::uint8_t>(bits_ & others.bits_);
        return both;
    }
    // Whether all of `wanted` are here; nothing wanted is always here.
    [[nodiscard]] constexpr bool cover(Rights wanted) const noexcept { return (wanted.bits_ & ~bits_) == 0; }

    friend constexpr bool operator==(const Rights&, const Rights&) noexcept = default;

private:
    std::uint8_t bits_ = 0;
};
constexpr Rights operator|(Rights one, Rights other) noexcept {
    return one.with(other);
}

using Pd = Number<struct PdTag, std::uint32_t>;  // handle of a protection domain; 0 is none

// Type 1 windows can be bound anew at any time and used through any queue pair of their domain; type 2B ones are bound
// when they are free, used through the queue pair that bound them, and freed by invalidation.
enum class WindowType : std::uint8_t { Type1, Type2B };

struct WindowBinding {
    Rkey window{};  // the key that it has from then on: the low 8 bits are the binder's choice, the others name the
                    // window
    Lkey region{};
    std::uint64_t address = 0;  // in the region, as its own requests name it
    std::uint64_t bytes = 0;    // 0: bound to nothing; of type 1 only
    Rights rights{};            // remote ones
    bool zero_based = false;    // the window's first byte is at address 0, else at `address`; of type 2B only
};

}  // namespace cairn::roce
