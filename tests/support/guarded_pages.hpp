// Memory between two inaccessible pages: an access beyond either end ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace cairn::test {

class GuardedPages {
public:
    explicit GuardedPages(std::size_t pages)
        : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), bytes_(pages * page_bytes_) {
        void* const all = mmap(nullptr, bytes_ + 2 * page_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) {
            std::abort();
        }
        base_ = static_cast<std::uint8_t*>(all);
        if (mprotect(base_ + page_bytes_, bytes_, PROT_READ | PROT_WRITE) != 0) {
            std::abort();
        }
    }
    GuardedPages(const GuardedPages&) = delete;
    GuardedPages& operator=(const GuardedPages&) = delete;
    ~GuardedPages() { munmap(base_, bytes_ + 2 * page_bytes_); }

    [[nodiscard]] std::span<std::uint8_t> span() { return {base_ + page_bytes_, bytes_}; }

private:
    std::size_t page_bytes_;
    std::size_t bytes_;
    std::uint8_t* base_ = nullptr;
};

}  // namespace cairn::test
