#include "fs/medium/path_kind.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <system_error>

namespace cairn::fs {

PathKind kind_of(const struct stat& facts) {
    if (S_ISREG(facts.st_mode)) {
        return PathKind::File;
    }
    if (S_ISBLK(facts.st_mode)) {
        return PathKind::Disk;
    }
    if (!S_ISCHR(facts.st_mode)) {
        return PathKind::Other;
    }
    std::error_code ignored;
    const std::string subsystem =
        fmt::format("/sys/dev/char/{}:{}/subsystem", major(facts.st_rdev), minor(facts.st_rdev));
    const std::filesystem::path leads_to = std::filesystem::read_symlink(subsystem, ignored);
    return leads_to.filename() == "dax" ? PathKind::DaxDevice : PathKind::OtherDevice;
}

Status judge_kind(const std::string& path, PathKind kind, Devices devices) {
    switch (kind) {
        case PathKind::File:
            return Nothing{};
        case PathKind::DaxDevice:
            if (devices == Devices::Taken) {
                return Nothing{};
            }
            return Error{fmt::format("'{}' is a DAX device, not a file", path),
                         "name it as persistent memory, or name a file"};
        case PathKind::OtherDevice:
            return Error{fmt::format("'{}' is a device, and no DAX device", path),
                         "name a DAX device ('daxctl list' has them), or a file"};
        case PathKind::Disk:
            return Error{fmt::format("'{}' is a disk", path),
                         "name a file in its file system, mounted with DAX (-o dax) if the disk is persistent memory; "
                         "or make a DAX device of that (ndctl create-namespace -m devdax)"};
        case PathKind::Other:
            break;
    }
    return Error{fmt::format("'{}' is no ordinary file", path), "name a file"};
}

}  // namespace cairn::fs
