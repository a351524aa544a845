#include "fs/rules/access.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace cairn::fs {

namespace {

constexpr std::uint32_t kBits = 07777;

// Returns the rights of the caller's class.
std::uint32_t rights_of(const Owned& file, const Credentials& who) noexcept {
    if (who.uid == file.uid) {
        return file.mode >> 6U & 7U;
    }
    return who.has_group(file.gid) ? file.mode >> 3U & 7U : file.mode & 7U;
}

}  // namespace

bool Credentials::has_group(std::uint32_t group) const noexcept {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

// The superuser may execute a file only if any class may.
int judge_access(const Owned& file, const Credentials& who, std::uint32_t wanted) noexcept {
    std::uint32_t rights = rights_of(file, who);
    if (who.is_superuser()) {
        const bool executes = S_ISDIR(file.mode) || (file.mode & 0111U) != 0;
        rights = kMayRead | kMayWrite | (executes ? kMayExecute : 0U);
    }
    return (rights & wanted) == wanted ? 0 : EACCES;
}

int judge_removal(const Owned& directory, const Owned& file, const Credentials& who) noexcept {
    if (const int refused = judge_access(directory, who, kMayWrite | kMayExecute); refused != 0) {
        return refused;
    }
    const bool owns = who.is_superuser() || who.uid == directory.uid || who.uid == file.uid;
    return (directory.mode & S_ISVTX) == 0 || owns ? 0 : EPERM;
}

int judge_owner(const Owned& file, const Credentials& who) noexcept {
    return who.is_superuser() || who.uid == file.uid ? 0 : EPERM;
}

std::uint32_t mode_after_chmod(const Owned& file, const Credentials& who, std::uint32_t bits) noexcept {
    const bool keeps = who.is_superuser() || who.has_group(file.gid);
    return (file.mode & ~kBits) | (bits & kBits & ~(keeps ? 0U : std::uint32_t{S_ISGID}));
}

int judge_chown(const Owned& file, const Credentials& who, std::uint32_t uid, std::uint32_t gid) noexcept {
    if (who.is_superuser()) {
        return 0;
    }
    const bool may = who.uid == file.uid && uid == file.uid && (gid == file.gid || who.has_group(gid));
    return may ? 0 : EPERM;
}

// A set-group-id bit without the right to execute has another meaning (mandatory locks), so it stays.
std::uint32_t mode_without_ids(std::uint32_t mode) noexcept {
    if (S_ISDIR(mode)) {
        return mode;
    }
    const std::uint32_t group = (mode & S_IXGRP) != 0 ? std::uint32_t{S_ISGID} : 0U;
    return mode & ~(std::uint32_t{S_ISUID} | group);
}

Owned made_in(const Owned& directory, const Credentials& who, std::uint32_t mode) noexcept {
    Owned made{mode, who.uid, who.gid};
    if ((directory.mode & S_ISGID) != 0) {
        made.gid = directory.gid;
        made.mode |= S_ISDIR(mode) ? std::uint32_t{S_ISGID} : 0U;
    }
    const bool of_group = who.is_superuser() || who.has_group(made.gid);
    if (!S_ISDIR(mode) && !of_group) {
        made.mode &= ~std::uint32_t{S_ISGID};
    }
    return made;
}

}  // namespace cairn::fs
