#include "apps/run/user_namespace.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "lib/broker/users.hpp"

namespace cairn::launch {

const char* judge_user_namespace(const Standing& standing, bool asked_for) noexcept {
    if (standing.user == standing.overflow_user) {
        return "all other users would have this user's number in there";
    }
    return standing.has_capabilities && !asked_for ? "capabilities hold for this user's own files only in there"
                                                   : nullptr;
}

Standing standing_of_process() noexcept {
    Standing found;
    found.user = geteuid();
    found.overflow_user = broker::overflow_user();
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    found.has_capabilities =
        syscall(SYS_capget, &header, sets.data()) == 0 && (sets[0].effective | sets[1].effective) != 0;
    return found;
}

}  // namespace cairn::launch
