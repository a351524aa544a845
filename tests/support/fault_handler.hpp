// A signal handler for tests of memory that vanishes, as UserMemory expects it of a process.
#pragma once

#include <sys/mman.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lib/base/user_memory.hpp"

namespace cairn::test {

// Installs the handler for the rest of the process. A fault outside of UserMemory::run() ends the process.
inline void catch_faults() noexcept {
    struct sigaction ours {};
    ours.sa_sigaction = [](int, siginfo_t* info, void*) {
        UserMemory::on_fault(info->si_addr);
        std::abort();
    };
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &ours, nullptr);
    sigaction(SIGBUS, &ours, nullptr);
    UserMemory::expect_faults();
}

// Pages of zeros that can vanish. Their addresses stay reserved, so that nothing else is mapped there.
class Pages {
public:
    explicit Pages(std::size_t bytes)
        : bytes_(bytes),
          data_(static_cast<std::uint8_t*>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        if (data_ == MAP_FAILED) {
            std::abort();
        }
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(data_, bytes_); }

    void vanish() { vanish(0, bytes_); }
    void vanish(std::size_t at, std::size_t bytes) { mprotect(data_ + at, bytes, PROT_NONE); }
    [[nodiscard]] std::span<std::uint8_t> all() const { return {data_, bytes_}; }

private:
    std::size_t bytes_;
    std::uint8_t* data_;
};

}  // namespace cairn::test
