// For a child of fork(): what takes the place of descriptors that are its parent's.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/owned_fd.hpp"

namespace cairn {

// Leads to /dev/null. Where no descriptor is left for that, what is replaced is closed.
class Nowhere {
public:
    // From now on `fd` does nothing. The parent's stays as it is. A negative one is passed over.
    void replace(int fd) const noexcept {
        if (fd >= 0 && (!fd_.is_open() || dup3(fd_.get(), fd, O_CLOEXEC) < 0)) {
            ::close(fd);
        }
    }

private:
    OwnedFd fd_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
};

}  // namespace cairn
