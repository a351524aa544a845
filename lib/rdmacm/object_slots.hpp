// The slots by which a loaded object calls functions of others, and its own that are exported.
#pragma once

#include <link.h>

#include <span>
#include <string_view>

namespace cairn::rdmacm {

struct Redirect {
    std::string_view name;
    void* to;
};

// Returns true if the object calls a function of this name that it has not itself.
[[nodiscard]] bool imports(const link_map& object, std::string_view name) noexcept;

// Whatever comes first in the global scope, the object calls its own functions from now on; and those of `redirects`
// that it imports, in the place of what it found. No thread may be about to call them. Returns false, with errno, if
// the slots cannot be written.
[[nodiscard]] bool bind_own(const link_map& object, std::span<const Redirect> redirects) noexcept;

}  // namespace cairn::rdmacm
