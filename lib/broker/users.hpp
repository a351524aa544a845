// Whose a process is that the kernel names by a number: in a user namespace one number stands for many users.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::broker {

// Returns who the users look like that a user namespace does not map. What cannot be read is as usual: 65534.
[[nodiscard]] std::uint32_t overflow_user() noexcept;

// All users that a user namespace does not map look like one there, the overflow uid, which may be the reader's own.
// Returns false if `uid` is that one and the namespace does not map everybody. `overflow_uid` and `uid_map` are what
// /proc/sys/kernel/overflowuid and /proc/self/uid_map say; empty: they cannot be read.
[[nodiscard]] bool is_one_user(std::uint32_t uid, std::string_view overflow_uid, std::string_view uid_map) noexcept;
// In the namespace of this process.
[[nodiscard]] bool is_one_user(std::uint32_t uid) noexcept;

// Returns whether a peer that the kernel names `peer` is surely this user.
[[nodiscard]] bool is_user(std::uint32_t peer, std::uint32_t user) noexcept;

}  // namespace cairn::broker
