// Replaces a parent's descriptors in a child of fork().
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cairn {

// Replaces descriptors by a read-only /dev/null: reads return end of file, writes fail with EBADF instead of seeming to
// succeed. The child has one thread, so a number that it closes stays free until it opens something. System calls are
// made by syscall(), since the functions of their names are cancellation points.
class Nowhere {
public:
    Nowhere() noexcept = default;
    Nowhere(const Nowhere&) = delete;
    Nowhere& operator=(const Nowhere&) = delete;
    ~Nowhere() {
        if (is_own_) {
            syscall(SYS_close, source_);
        }
    }
    // Makes `fd` a copy of /dev/null, so that its number stays taken. The parent's descriptor is unaffected. If the
    // process had no descriptor left for /dev/null, the first number that is replaced becomes the source of the later
    // copies. Ignores a negative `fd`. Closes one above the limit of descriptors.
    void replace(int fd) noexcept {
        if (fd < 0 || fd == source_ || copy_to(fd)) {
            return;
        }
        syscall(SYS_close, fd);
        if (source_ < 0) {
            source_ = open();  // the lowest free number, usually this one
            is_own_ = source_ >= 0 && source_ != fd;
            static_cast<void>(is_own_ && copy_to(fd));
        }
    }

private:
    static int open() noexcept {
        return static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
    }
    [[nodiscard]] bool copy_to(int fd) const noexcept {
        return source_ >= 0 && syscall(SYS_dup3, source_, fd, O_CLOEXEC) >= 0;
    }

    int source_{open()};
    bool is_own_ = source_ >= 0;
};

}  // namespace cairn
