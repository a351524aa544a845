#include "fs/channel/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::fs {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failed(const char* what) {
    return Error{fmt::format("a client's memory cannot be {}: {}", what, std::strerror(errno)),
                 "free memory, or choose fewer slots or less data of each"};
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::size_t bytes, Pages pages) {
    const int fd = memfd_create("cairn-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return failed("made");
    }
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
        const Error error = failed("made");
        ::close(fd);
        return error;
    }
    return map(fd, bytes, pages);
}

// Memory that can be cut would end its user by SIGBUS.
Result<SharedMemory> SharedMemory::map(int fd, std::size_t bytes, Pages pages) {
    struct stat facts {};
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &facts) != 0 ||
        facts.st_size != static_cast<off_t>(bytes)) {
        ::close(fd);
        return Error{fmt::format("memory of {} bytes that cannot be cut was expected", bytes),
                     "run daemons and clients of one version"};
    }
    const int flags = MAP_SHARED | (pages == Pages::AtOnce ? MAP_POPULATE : 0);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED) {
        const Error error = failed("mapped");
        ::close(fd);
        return error;
    }
    return SharedMemory(fd, {static_cast<std::uint8_t*>(memory), bytes});
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory::~SharedMemory() {
    if (!bytes_.empty()) {
        munmap(bytes_.data(), bytes_.size());
    }
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

}  // namespace cairn::fs
