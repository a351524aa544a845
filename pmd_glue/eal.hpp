// DPDK's environment: started once per process, torn down when the object goes.
#pragma once

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::pmd {

class Eal {
public:
    // Hands argv up to "--" to EAL. Errors name the cause EAL reports and the remedy.
    static Result<Eal> start(int argc, char** argv);
    Eal(Eal&& other) noexcept : consumed_(other.consumed_) { other.consumed_ = -1; }
    Eal& operator=(Eal&&) = delete;
    ~Eal();

    // Arguments EAL took, program name included; the application's own follow.
    [[nodiscard]] int consumed() const noexcept { return consumed_; }

private:
    explicit Eal(int consumed) noexcept : consumed_(consumed) {}
    int consumed_;
};

// TSC as an Instant. One multiplication; any thread.
class Clock {
public:
    Clock() noexcept;  // after Eal::start()
    [[nodiscard]] Instant now() const noexcept;

private:
    std::int64_t ns_per_tick_32_;  // fixed point, 32 fraction bits
    std::uint64_t start_;
};

}  // namespace cairn::pmd
