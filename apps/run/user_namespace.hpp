// Judges whether this process may enter a user namespace. An ordinary user may make one, in which that user alone is
// known.
#pragma once

#include <cstdint>

namespace cairn::launch {

// The facts about a process that would enter a user namespace of its own.
struct Standing {
    std::uint32_t user = 0;
    std::uint32_t overflow_user = 65534;  // the number that all other users have in the namespace
    bool has_capabilities = false;
};
// Returns why the process should not enter a user namespace that knows one user; nullptr if it may. `asked_for`: the
// user asked for it by name, and may know its costs.
[[nodiscard]] const char* judge_user_namespace(const Standing& standing, bool asked_for) noexcept;
// Returns the facts about this process. A fact that cannot be determined is as for most users.
[[nodiscard]] Standing standing_of_process() noexcept;

}  // namespace cairn::launch
