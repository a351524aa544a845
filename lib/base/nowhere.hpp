// For a child of fork(): what takes the place of descriptors that are its parent's.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cairn {

// Leads to /dev/null, to be read only: who reads is at its end, and who writes is told EBADF, not that it is done. The
// child has one thread, so a number that it gives up is free until it opens something. System calls are made as such:
// the functions of their names are cancellation points.
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
    // From now on `fd` does nothing, and its number stays taken, also where no descriptor is left: then the first that
    // is replaced is what the others are copies of. The parent's stays as it is. A negative one is passed over. One
    // that is above the limit of descriptors is closed.
    // mutants: base-nowhere-replace
    void replace(int fd) noexcept {
        if (fd < 0 || fd == source_ || copy_to(fd)) {
            return;
        }
        syscall(SYS_close, fd);
        if (source_ < 0) {
            source_ = open();  // the lowest number that is free: this one, mostly
            is_own_ = source_ >= 0 && source_ != fd;
            static_cast<void>(is_own_ && copy_to(fd));
        }
    }

private:
    // mutants: base-nowhere-open
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
