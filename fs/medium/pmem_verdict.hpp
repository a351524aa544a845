// How far what libpmem has mapped is taken for persistent memory.
#pragma once

#include <cstdint>

#include "fs/medium/backends.hpp"

namespace cairn::fs {

// What libpmem says of a mapping.
struct PmemFacts {
    bool is_pmem = false;     // a DAX device, or a file that is mapped with MAP_SYNC
    bool auto_flush = false;  // the caches survive a loss of power (eADR)
};

enum class PmemVerdict : std::uint8_t { CacheLine, Byte, Fake, Refused };

// Caches that survive a loss of power make nothing of an ordinary file: its pages are the kernel's, which writes them
// back by itself.
// mutants: fs-judge-pmem
[[nodiscard]] constexpr PmemVerdict judge_pmem(PmemFacts facts, PmemChoice choice) noexcept {
    if (!facts.is_pmem) {
        return choice.allow_fake ? PmemVerdict::Fake : PmemVerdict::Refused;
    }
    return facts.auto_flush ? PmemVerdict::Byte : PmemVerdict::CacheLine;
}

}  // namespace cairn::fs
