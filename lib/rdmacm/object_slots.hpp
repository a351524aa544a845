// The slots by which a loaded object calls functions of other objects, and its own exported ones.
#pragma once

#include <link.h>

#include <span>
#include <string_view>

namespace cairn::rdmacm {

struct Redirect {
    std::string_view name;
    void* to;
};

// Returns true if the object calls a function of this name and does not define it.
[[nodiscard]] bool imports(const link_map& object, std::string_view name) noexcept;

// Makes the object call its own functions from now on, whatever comes first in the global scope. Functions of
// `redirects` that it imports replace those that it found. No thread may be about to call them. Returns false, with
// errno, if the slots cannot be written.
[[nodiscard]] bool bind_own(const link_map& object, std::span<const Redirect> redirects) noexcept;

}  // namespace cairn::rdmacm
