#include "lib/ibverbs/open_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/of_process.hpp"

namespace cairn::ibverbs {

namespace {

constexpr const char* kName = "cairn-verbs";

// A file is known by its inode: programs duplicate descriptors, and hand them on.
using Inode = std::pair<dev_t, ino_t>;

struct Files {
    std::mutex mutex;
    std::map<Inode, std::weak_ptr<OpenFile>> by_inode;
};

bool is_verbs_file(int fd) noexcept {
    char target[64]{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return readlink(link.c_str(), target, sizeof(target) - 1) > 0 &&
           std::string(target).rfind(std::string("/memfd:") + kName, 0) == 0;
}

}  // namespace

int OpenFile::make(const std::shared_ptr<OpenFile>& file) {
    const int fd = memfd_create(kName, MFD_CLOEXEC);
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0) {
        return -1;
    }
    auto& all = OfProcess<Files>::get();
    const std::lock_guard hold(all.mutex);
    std::erase_if(all.by_inode, [](const auto& each) { return each.second.expired(); });
    all.by_inode[{info.st_dev, info.st_ino}] = file;
    return fd;
}

std::shared_ptr<OpenFile> OpenFile::find(int fd) {
    struct stat info {};
    if (fstat(fd, &info) != 0) {
        return fail(EINVAL);
    }
    auto& all = OfProcess<Files>::get();
    const std::lock_guard hold(all.mutex);
    const auto found = all.by_inode.find({info.st_dev, info.st_ino});
    std::shared_ptr<OpenFile> file = found == all.by_inode.end() ? nullptr : found->second.lock();
    if (file == nullptr) {
        errno = is_verbs_file(fd) ? EOPNOTSUPP : ENODEV;
    }
    return file;
}

}  // namespace cairn::ibverbs
