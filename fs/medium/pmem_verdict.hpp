// Decides whether memory that libpmem has mapped counts as persistent.
#pragma once

#include <cstdint>

#include "fs/medium/backends.hpp"

namespace cairn::fs {

// The properties of a mapping, as libpmem reports them.
struct PmemFacts {
    bool is_pmem = false;     // a DAX device, or a file that is mapped with MAP_SYNC
    bool auto_flush = false;  // the caches survive a loss of power (eADR)
};

enum class PmemVerdict : std::uint8_t { CacheLine, Byte, Fake, Refused };

// Judges a mapping. Caches that survive a loss of power do not make an ordinary file persistent. Its pages belong to
// the kernel, which writes them back itself.
[[nodiscard]] constexpr PmemVerdict judge_pmem(PmemFacts facts, PmemChoice choice) noexcept {
    if (!facts.is_pmem) {
        return choice.allow_fake ? PmemVerdict::Fake : PmemVerdict::Refused;
    }
    return facts.auto_flush ? PmemVerdict::Byte : PmemVerdict::CacheLine;
}

}  // namespace cairn::fs
