// Rights to memory, and the binding of a window to it (IBTA vol. 1, 10.6.3, 10.6.6.2).
#pragma once

#include <cstdint>

#include "lib/base/types.hpp"

namespace cairn::roce {

// A right that a region grants. Its owner may always read it.
enum class Right : std::uint8_t {
    LocalWrite = 1,
    RemoteWrite = 2,
    RemoteRead = 4,
    RemoteAtomic = 8,
    RemoteInvalidate = 16,  // a SEND with Invalidate or a LocalInvalidate of our own ends the region
    BindWindow = 32,        // windows may be bound to it
    FlushGlobal = 64,       // a FLUSH may make written data visible to all
    FlushPersistent = 128,  // a FLUSH may make it safe from power failures
};

// A set of rights. A type of its own keeps rights apart from other flags.
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
    // Returns true if all of `wanted` are in the set. True for an empty `wanted`.
    [[nodiscard]] constexpr bool cover(Rights wanted) const noexcept { return (wanted.bits_ & ~bits_) == 0; }

    friend constexpr bool operator==(const Rights&, const Rights&) noexcept = default;

private:
    std::uint8_t bits_ = 0;
};
constexpr Rights operator|(Rights one, Rights other) noexcept {
    return one.with(other);
}

using Pd = Number<struct PdTag, std::uint32_t>;  // handle of a protection domain; 0 is none

// A type 1 window can be bound anew at any time and is used through any queue pair of its domain. A type 2B window is
// bound while it is free, is used through the queue pair that bound it, and is freed by invalidation.
enum class WindowType : std::uint8_t { Type1, Type2B };

struct WindowBinding {
    Rkey window{};  // the key that the window has from then on: the binder chooses the low 8 bits, the others
                    // name the window
    Lkey region{};
    std::uint64_t address = 0;  // in the region, by the region's own addresses
    std::uint64_t bytes = 0;    // 0: the window is bound to nothing; type 1 only
    Rights rights{};            // remote ones
    bool zero_based = false;    // the window's addresses begin at 0, not at `address`; type 2B only
};

}  // namespace cairn::roce
