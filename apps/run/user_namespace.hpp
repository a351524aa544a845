// Whether a user namespace is a place for this process. An ordinary user may make one, which knows him alone.
#pragma once

#include <cstdint>

namespace cairn::launch {

// What a process would enter a user namespace of its own with.
struct Standing {
    std::uint32_t user = 0;
    std::uint32_t overflow_user = 65534;  // who all others seem to be in there
    bool has_capabilities = false;
};
// Returns why a user namespace that knows one user is no place for the process; nullptr if it is. `asked_for`: by name,
// by a user who may know what he gives up.
[[nodiscard]] const char* judge_user_namespace(const Standing& standing, bool asked_for) noexcept;
// What this process has. What cannot be found out is as for most users.
[[nodiscard]] Standing standing_of_process() noexcept;

}  // namespace cairn::launch
