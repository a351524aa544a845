// Decides which user a process is of, by the number that the kernel gives. In a user namespace one number stands for
// many users.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::broker {

// Returns the number of all users that a user namespace does not map; 65534, the usual one, if it cannot be read.
[[nodiscard]] std::uint32_t overflow_user() noexcept;

// Returns whether `uid` stands for one user alone. All users that a user namespace does not map have one number there,
// the overflow uid, which the reader may have, too. Returns false if `uid` is that one and the namespace does not map
// all users. `overflow_uid` and `uid_map` are the contents of /proc/sys/kernel/overflowuid and /proc/self/uid_map;
// empty: they cannot be read.
[[nodiscard]] bool is_one_user(std::uint32_t uid, std::string_view overflow_uid, std::string_view uid_map) noexcept;
// As is_one_user(), in the namespace of this process.
[[nodiscard]] bool is_one_user(std::uint32_t uid) noexcept;

// Returns whether a peer that the kernel names `peer` is certainly this user.
[[nodiscard]] bool is_user(std::uint32_t peer, std::uint32_t user) noexcept;

}  // namespace cairn::broker
