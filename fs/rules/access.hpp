// Who may do what to a file (POSIX.1-2017, 4.5 and the functions named below).
#pragma once

#include <cstdint>
#include <span>

namespace cairn::fs {

// Of a client, as its kernel says.
struct Credentials {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::span<const std::uint32_t> groups{};  // the others

    [[nodiscard]] bool is_superuser() const noexcept { return uid == 0; }
    [[nodiscard]] bool has_group(std::uint32_t group) const noexcept;
};

// Of a file, as far as rules need it. `mode` as st_mode.
struct Owned {
    std::uint32_t mode = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

// What is wanted: any of these together.
constexpr std::uint32_t kMayRead = 4;
constexpr std::uint32_t kMayWrite = 2;
constexpr std::uint32_t kMayExecute = 1;  // of a directory: look names up

// Returns 0 or EACCES. The class of the caller counts alone: an owner without a right has it not as one of the others.
[[nodiscard]] int judge_access(const Owned& file, const Credentials& who, std::uint32_t wanted) noexcept;
// A name is taken out of a directory: unlink, rmdir, rename. In a sticky one only who owns it, or the file, may.
// Returns 0, EACCES or EPERM.
[[nodiscard]] int judge_removal(const Owned& directory, const Owned& file, const Credentials& who) noexcept;
// Returns 0 or EPERM: who owns the file, or the superuser.
[[nodiscard]] int judge_owner(const Owned& file, const Credentials& who) noexcept;

// chmod: returns the mode that the file gets for `bits`, of the low twelve. The file's type stays. Who is not of the
// file's group sets no group id on execution.
[[nodiscard]] std::uint32_t mode_after_chmod(const Owned& file, const Credentials& who, std::uint32_t bits) noexcept;
// chown to these: returns 0 or EPERM. An owner may give the file to a group that it is of.
[[nodiscard]] int judge_chown(const Owned& file, const Credentials& who, std::uint32_t uid, std::uint32_t gid) noexcept;
// Returns the mode without what a change of owner, or a write by another, takes away.
[[nodiscard]] std::uint32_t mode_without_ids(std::uint32_t mode) noexcept;

// A file is made in a directory. `mode` has its type and the permissions that are wanted, without the umask's. In a
// directory with a set-group-id bit it gets the directory's group, and a directory that bit too.
[[nodiscard]] Owned made_in(const Owned& directory, const Credentials& who, std::uint32_t mode) noexcept;

}  // namespace cairn::fs
