#include "pmd_glue/leftovers.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace cairn::pmd {

namespace {

constexpr std::size_t kMost = 16;
constexpr std::size_t kLongestPath = 108;  // of a socket, with the final zero

std::array<std::array<char, kLongestPath>, kMost> paths{};
std::atomic<std::size_t> count{0};

}  // namespace

void remember_leftover(const std::string& path) noexcept {
    const std::size_t place = count.load(std::memory_order_relaxed);
    if (place < kMost && path.size() < kLongestPath) {
        std::memcpy(paths[place].data(), path.c_str(), path.size() + 1);
        count.store(place + 1, std::memory_order_release);  // pairs with the acquire in a signal handler
    }
}

void remove_leftovers() noexcept {
    for (std::size_t i = count.load(std::memory_order_acquire); i > 0; --i) {
        unlink(paths[i - 1].data());
    }
}

}  // namespace cairn::pmd
