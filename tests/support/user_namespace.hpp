// A child of a test in a user namespace of its own.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "lib/base/owned_fd.hpp"

namespace cairn::test {

constexpr int kNoUserNamespace = 77;  // for _exit(), if the machine allows none

// Makes the calling process `uid` in a user namespace that maps no other user. Returns false if that is refused. The
// process has one thread.
inline bool become_in_user_namespace(std::uint32_t uid) {
    const std::string map = std::to_string(uid) + " " + std::to_string(geteuid()) + " 1";
    if (unshare(CLONE_NEWUSER) != 0) {
        return false;
    }
    const OwnedFd file(open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
    return file.is_open() && write(file.get(), map.data(), map.size()) == static_cast<ssize_t>(map.size()) &&
           geteuid() == uid;
}

}  // namespace cairn::test
