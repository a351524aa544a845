#include "fs/daemon/no_port.hpp"

#include <poll.h>

#include <ctime>

namespace cairn::fs {

void NoPort::wait(Duration most, int also) noexcept {
    constexpr std::int64_t kNsPerS = 1'000'000'000;
    const timespec timeout{most.ns / kNsPerS, most.ns % kNsPerS};
    pollfd waiting{also, POLLIN, 0};
    ::ppoll(&waiting, also >= 0 ? 1 : 0, &timeout, nullptr);
}

}  // namespace cairn::fs
