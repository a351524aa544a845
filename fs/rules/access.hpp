// Permissions of users to files (POSIX.1-2017, 4.5 and the functions named below).
#pragma once

#include <cstdint>
#include <span>

namespace cairn::fs {

// The ids of a client's user, as its kernel reports them.
struct Credentials {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::span<const std::uint32_t> groups{};  // supplementary groups

    [[nodiscard]] bool is_superuser() const noexcept { return uid == 0; }
    [[nodiscard]] bool has_group(std::uint32_t group) const noexcept;
};

// The attributes of a file that the rules need. `mode` is as st_mode.
struct Owned {
    std::uint32_t mode = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

// Wanted rights; any of these together.
constexpr std::uint32_t kMayRead = 4;
constexpr std::uint32_t kMayWrite = 2;
constexpr std::uint32_t kMayExecute = 1;  // for a directory: to look names up

// Judges access; returns 0 or EACCES. Only the caller's own class counts: an owner without a right does not get it as
// one of the others.
[[nodiscard]] int judge_access(const Owned& file, const Credentials& who, std::uint32_t wanted) noexcept;
// Judges whether a name may be taken out of a directory: unlink, rmdir, rename. In a sticky directory only its owner or
// the file's owner may do so. Returns 0, EACCES or EPERM.
[[nodiscard]] int judge_removal(const Owned& directory, const Owned& file, const Credentials& who) noexcept;
// Returns 0 for the file's owner and the superuser, EPERM for others.
[[nodiscard]] int judge_owner(const Owned& file, const Credentials& who) noexcept;

// chmod: returns the mode that the file gets for `bits`, of the low twelve. The file's type stays. A caller outside the
// file's group cannot set the set-group-id bit.
[[nodiscard]] std::uint32_t mode_after_chmod(const Owned& file, const Credentials& who, std::uint32_t bits) noexcept;
// chown to these: returns 0 or EPERM. An owner may give the file to one of the owner's groups.
[[nodiscard]] int judge_chown(const Owned& file, const Credentials& who, std::uint32_t uid, std::uint32_t gid) noexcept;
// Returns the mode without the bits that a change of owner, or another user's write, removes.
[[nodiscard]] std::uint32_t mode_without_ids(std::uint32_t mode) noexcept;

// Returns the attributes of a file that is made in a directory. `mode` has its type and the wanted permissions without
// the umask's. In a directory with the set-group-id bit the file gets the directory's group. A directory gets that bit,
// too.
[[nodiscard]] Owned made_in(const Owned& directory, const Credentials& who, std::uint32_t mode) noexcept;

}  // namespace cairn::fs
