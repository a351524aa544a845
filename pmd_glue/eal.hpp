// DPDK's environment. It is started once per process and ends with this object.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/mem/region.hpp"

namespace cairn::pmd {

class Eal {
public:
    // Gives EAL the arguments up to "--". An Error names the cause that EAL reports and the remedy.
    static Result<Eal> start(int argc, char** argv);
    Eal(Eal&& other) noexcept : consumed_(other.consumed_) { other.consumed_ = -1; }
    Eal& operator=(Eal&&) = delete;
    ~Eal();

    // Returns the number of arguments that EAL took, the program's name included. The application's arguments follow.
    [[nodiscard]] int consumed() const noexcept { return consumed_; }

private:
    explicit Eal(int consumed) noexcept : consumed_(consumed) {}
    int consumed_;
};

// Returns the CPUs that the calling thread may run on, in order.
[[nodiscard]] std::vector<std::uint32_t> allowed_cpus();
// Returns the CPUs of the thread that called Eal::start(), which then pinned it to one of them.
[[nodiscard]] const std::vector<std::uint32_t>& cpus_before_eal() noexcept;

// Returns the kind of pages of EAL's own memory.
[[nodiscard]] mem::PageKind eal_pages() noexcept;

// Reads the TSC as an Instant, by one multiplication. Any thread may call it.
class Clock {
public:
    Clock() noexcept;  // to be called after Eal::start()
    [[nodiscard]] Instant now() const noexcept;

private:
    std::int64_t ns_per_tick_32_;  // fixed point, 32 fraction bits
    std::uint64_t start_;
};

// Keeps the calling thread busy for that time.
void keep_busy(Duration span) noexcept;

}  // namespace cairn::pmd
