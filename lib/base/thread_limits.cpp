#include "lib/base/thread_limits.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

namespace cairn {

const char* remedy_for_threads() noexcept {
    constexpr std::size_t kGuardBytes = 4096;
    pthread_attr_t usual;
    std::size_t bytes = 0;
    pthread_attr_init(&usual);
    pthread_attr_getstacksize(&usual, &bytes);
    pthread_attr_destroy(&usual);
    bytes += kGuardBytes;
    void* const stack = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return "raise the limit of address space (ulimit -v), or lower that of stacks (ulimit -s)";
    }
    munmap(stack, bytes);
    return "raise the limit of threads (ulimit -u, or that of the container)";
}

}  // namespace cairn
