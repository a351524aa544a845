// Maps each queue pair number to a worker of its address. NIC queues, sockets, engines and services all use this
// mapping.
#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/assert.hpp"
#include "lib/base/types.hpp"

namespace cairn::port {

// The low bits of a number name the worker. Numbers 0 and 1 (the management's) and numbers that name no worker belong
// to worker 0.
class QpnOwners {
public:
    static constexpr std::uint32_t kMostWorkers = 256;

    constexpr QpnOwners() noexcept = default;
    // Maps to `workers` workers, in [1, kMostWorkers] (asserted).
    constexpr explicit QpnOwners(std::uint32_t workers) noexcept
        : workers_(workers), mask_(std::bit_ceil(workers) - 1) {
        CAIRN_ASSERT(workers >= 1 && workers <= kMostWorkers);
    }

    [[nodiscard]] constexpr std::uint16_t of(Qpn qpn) const noexcept {
        const std::uint32_t index = qpn.value & mask_;
        return static_cast<std::uint16_t>(index < workers_ && qpn.value > kLastManagement ? index : 0);
    }
    [[nodiscard]] constexpr std::uint32_t workers() const noexcept { return workers_; }
    [[nodiscard]] constexpr std::uint32_t mask() const noexcept { return mask_; }
    // Returns the number of low bits that name the worker: roce::EngineConfig::owner_bits.
    [[nodiscard]] constexpr std::uint8_t bits() const noexcept {
        return static_cast<std::uint8_t>(std::popcount(mask_));
    }
    // Returns the step of service numbers. A service's number is a multiple of the step, so that number + worker
    // belongs to that worker.
    [[nodiscard]] constexpr std::uint32_t step() const noexcept { return mask_ + 1; }

    static constexpr std::uint32_t kLastManagement = 1;

private:
    std::uint32_t workers_ = 1;
    std::uint32_t mask_ = 0;
};

}  // namespace cairn::port
