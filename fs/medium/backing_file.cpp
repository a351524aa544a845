#include "fs/medium/backing_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "fs/medium/file_blocks.hpp"
#include "fs/medium/length.hpp"

namespace cairn::fs {

namespace {

// since Linux 5.14; older kernels refuse it with EINVAL
constexpr int kAdvisePopulateRead = 22;
constexpr int kAdvisePopulateWrite = 23;

std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

Error cannot(std::string_view what, const std::string& path, int reason, std::string remedy) {
    return {fmt::format("cannot {} '{}': {}", what, path, std::strerror(reason)), std::move(remedy)};
}

// A file that is made there would lie in memory, under the name of a device.
bool is_among_devices(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::equivalent(folder_of(path), "/dev", ignored);
}

// Linux keeps the name of a DAX device that serves as system memory, or is disabled.
bool is_dax_device(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && kind_of(facts) == PathKind::DaxDevice;
}

Error cannot_open(const std::string& path, bool may_make, int reason) {
    if (reason == ENXIO && is_dax_device(path)) {
        return cannot("open", path, reason,
                      "it is disabled, or in use as the system's memory: daxctl reconfigure-device --mode=devdax");
    }
    if (reason != ENOENT) {
        return cannot("open", path, reason, "name a file that this user may read and write");
    }
    if (is_among_devices(path)) {
        return cannot("open", path, reason, "name a device that is there: 'daxctl list' has DAX devices");
    }
    if (std::filesystem::is_directory(folder_of(path))) {
        return cannot("open", path, reason,
                      may_make ? "name a file, or remove the link that leads nowhere" : "give a length to make it");
    }
    return cannot("open", path, reason, fmt::format("make the folder '{}'", folder_of(path)));
}

// Asks the disk first: a disk that becomes full while room is taken hurts all its users.
bool has_room(int fd, std::size_t bytes) noexcept {
    struct statvfs disk {};
    return ::fstatvfs(fd, &disk) != 0 || disk.f_bfree >= bytes / disk.f_frsize;
}

}  // namespace

Result<BackingFile> BackingFile::open(const std::string& path, std::size_t bytes, Devices devices) {
    if (bytes != 0) {
        if (Status judged = judge_length(fmt::format("'{}' with a length", path), bytes); !judged.ok()) {
            return judged.error();
        }
    }
    BackingFile file(path);
    if (Status opened = file.open_or_make(bytes != 0); !opened.ok()) {
        return opened.error();
    }
    if (Status locked = file.lock(); !locked.ok()) {
        return locked.error();
    }
    if (Status settled = file.settle_length(bytes, devices); !settled.ok()) {
        return settled.error();
    }
    return file;
}

BackingFile::BackingFile(BackingFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(other.bytes_),
      fd_(std::exchange(other.fd_, -1)),
      made_(std::exchange(other.made_, false)) {}

// Removes the file before the lock ends, so that no other process can have begun to use it.
BackingFile::~BackingFile() {
    if (made_) {
        ::unlink(path_.c_str());
    }
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Status BackingFile::open_or_make(bool may_make) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    int reason = errno;
    if (fd_ < 0 && reason == ENOENT && may_make && !is_among_devices(path_)) {
        fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
        reason = errno;
        made_ = fd_ >= 0;
    }
    if (fd_ < 0) {
        return cannot_open(path_, may_make, reason);
    }
    return Nothing{};
}

Status BackingFile::lock() {
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        return Nothing{};
    }
    const int reason = errno;
    made_ = false;  // a faster process has it
    if (reason == EWOULDBLOCK) {
        return Error{fmt::format("'{}' is in use by another daemon", path_), "end that one, or name another file"};
    }
    return cannot("lock", path_, reason, "name a file in a file system that has locks");
}

Status BackingFile::settle_length(std::size_t wanted, Devices devices) {
    struct stat facts {};
    if (::fstat(fd_, &facts) != 0) {
        return cannot("look at", path_, errno, "name another file");
    }
    const PathKind kind = kind_of(facts);
    if (Status judged = judge_kind(path_, kind, devices); !judged.ok()) {
        return judged;
    }
    if (kind == PathKind::DaxDevice) {
        bytes_ = wanted;
        return Nothing{};
    }
    const auto length = static_cast<std::size_t>(facts.st_size);
    if (length == 0 && wanted != 0) {
        return take_room(wanted);
    }
    if (wanted != 0 && wanted != length) {
        return Error{fmt::format("'{}' has {}, not {}", path_, length_text(length), length_text(wanted)),
                     "ask for the length that it has, or remove it with all that it holds"};
    }
    if (Status judged = judge_length(fmt::format("the file '{}'", path_), length); !judged.ok()) {
        return judged;
    }
    return take_room(length);
}

// If the file has its length, fills holes. For that xfs wants as much free room as the file is long, even if there are
// no holes.
Status BackingFile::take_room(std::size_t bytes) {
    struct stat before {};
    const bool is_new = ::fstat(fd_, &before) == 0 && before.st_size == 0;
    const char* const remedy = "ask for less, or free some room";
    if (is_new && !has_room(fd_, bytes)) {
        return cannot(fmt::format("take {} for", length_text(bytes)), path_, ENOSPC, remedy);
    }
    const bool is_whole = !is_new && has_all_blocks(fd_, bytes);
    const int reason = is_whole ? 0 : ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
    if (reason != 0) {
        return cannot(fmt::format("take {} for", length_text(bytes)), path_, reason, remedy);
    }
    bytes_ = bytes;
    return is_new ? record_name() : Nothing{};
}

// Makes the file's name durable. Without its name in the folder, durable content of the file would be lost, too.
Status BackingFile::record_name() {
    const std::string folder = folder_of(path_);
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool recorded = opened >= 0 && ::fsync(fd_) == 0 && ::fsync(opened) == 0;
    const int reason = errno;
    if (opened >= 0) {
        ::close(opened);
    }
    if (!recorded) {
        return cannot("record a new file in", folder, reason, "name a file in a folder that this user may read");
    }
    return Nothing{};
}

namespace {

// Populates a part. Returns 0 or an errno.
int populate_part(std::span<std::uint8_t> memory, Touch touch) noexcept {
    const int advice = touch == Touch::Read ? kAdvisePopulateRead : kAdvisePopulateWrite;
    if (::madvise(memory.data(), memory.size(), advice) == 0) {
        return 0;
    }
    const int reason = errno;
    if (reason == EINVAL) {
        touch_pages(memory, touch);
    }
    return reason == EINVAL ? 0 : reason;
}

// Uses as many threads as the process has CPUs. Each gets at least this much, and whole huge pages.
constexpr std::size_t kLeastPartBytes = std::size_t{256} << 20U;
constexpr std::size_t kMostThreads = 16;

}  // namespace

// A page takes the kernel a quarter of a microsecond, so a start with tens of gigabytes takes seconds.
Status populate(std::span<std::uint8_t> memory, Touch touch, const std::string& path) {
    cpu_set_t cpus{};
    const bool knows = ::sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
    const std::size_t wanted = knows ? static_cast<std::size_t>(CPU_COUNT(&cpus)) : 1;
    const std::size_t parts =
        std::clamp<std::size_t>(memory.size() / kLeastPartBytes, 1, std::min(wanted, kMostThreads));
    const std::size_t part_bytes = (memory.size() / parts + kLengthUnitBytes - 1) / kLengthUnitBytes * kLengthUnitBytes;
    std::vector<int> reasons(parts);
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i != parts; ++i) {
            const std::size_t begin = std::min(i * part_bytes, memory.size());
            const auto part = memory.subspan(begin, std::min(part_bytes, memory.size() - begin));
            try {
                others.emplace_back([part, touch, &reason = reasons[i]] { reason = populate_part(part, touch); });
            } catch (const std::system_error&) {
                reasons[i] = populate_part(part, touch);  // no more threads can be started
            }
        }
        reasons[0] = populate_part(memory.first(std::min(part_bytes, memory.size())), touch);
    }
    for (const int reason : reasons) {
        if (reason != 0) {
            return cannot(fmt::format("map all {} of", length_text(memory.size())), path, reason,
                          "free memory; or replace the medium, if a page of it is broken");
        }
    }
    return Nothing{};
}

void touch_pages(std::span<std::uint8_t> memory, Touch touch) noexcept {
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < memory.size(); at += page_bytes) {
        volatile std::uint8_t& byte = memory[at];
        const std::uint8_t value = byte;
        if (touch == Touch::Write) {
            byte = value;
        }
    }
}

}  // namespace cairn::fs
