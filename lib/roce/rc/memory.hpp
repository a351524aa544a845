// Protection domains and memory regions: which bytes of this process a work request or a peer may touch
// (IBTA vol. 1, 10.2.3, 10.6).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

// What a region allows besides reading by its owner.
enum class Right : std::uint8_t {
    LocalWrite = 1,
    RemoteWrite = 2,
    RemoteRead = 4,
    RemoteAtomic = 8,
    RemoteInvalidate = 16,  // a SEND with Invalidate may end it
};

// A set of rights; a type of its own, so that no flag meets another kind of flag.
class Rights {
public:
    constexpr Rights() noexcept = default;
    // NOLINTNEXTLINE(google-explicit-constructor): one right is a set
    constexpr Rights(Right one) noexcept : bits_(static_cast<std::uint8_t>(one)) {}

    [[nodiscard]] constexpr Rights with(Rights others) const noexcept {
        Rights both;
        both.bits_ = static_cast<std::uint8_t>(bits_ | others.bits_);
        return both;
    }
    // Whether all of `wanted` are here; nothing wanted is always here.
    [[nodiscard]] constexpr bool cover(Rights wanted) const noexcept { return (wanted.bits_ & ~bits_) == 0; }

    friend constexpr bool operator==(const Rights&, const Rights&) noexcept = default;

private:
    std::uint8_t bits_ = 0;
};
constexpr Rights operator|(Rights one, Rights other) noexcept {
    return one.with(other);
}

using Pd = Number<struct PdTag, std::uint32_t>;  // handle of a protection domain; 0 is none

struct RegionRequest {
    Pd pd{};
    std::span<std::uint8_t> memory{};  // stays the caller's and in place until destroy_region()
    std::uint64_t base = 0;            // the address by which requests name its first byte; 0: zero-based
    Rights rights{};
};

enum class MemoryVerdict : std::uint8_t { Ok, UnknownKey, WrongPd, NoRight, OutOfRange };

struct MemoryView {
    MemoryVerdict verdict = MemoryVerdict::UnknownKey;
    std::uint8_t* data = nullptr;  // of the range's first byte; nullptr unless Ok
};

// All regions and domains of one engine. A region's rkey is also its lkey. It holds the region's index, bits that
// only the seed tells, and a generation: neither an old key nor one seen on the wire leads to the next one, and the
// key of a destroyed region is dead before destroy_region() returns. Driven by the engine's thread; lookups allocate
// nothing.
class MemoryTable {
public:
    using Seed = std::array<std::uint64_t, 2>;  // from the caller's source of chance; a test gives its own

    // `regions` is in [1, kMaxRegions] (asserted).
    MemoryTable(std::uint32_t regions, const Seed& seed);

    [[nodiscard]] Pd create_pd();
    // False, and nothing is done: no such domain, or regions or queue pairs are still in it.
    [[nodiscard]] bool destroy_pd(Pd pd) noexcept;
    // Queue pairs hold their domain; false when there is no such domain.
    [[nodiscard]] bool hold_pd(Pd pd) noexcept;
    void release_pd(Pd pd) noexcept;

    // Errors: no such domain, remote writing or atomics without local writing (10.6), the address range wraps,
    // the table is full.
    [[nodiscard]] Result<Rkey> register_region(const RegionRequest& request);
    // False when no region has the key (any more).
    bool destroy_region(Rkey key) noexcept;

    // Where [address, address + bytes) of the region lies. `bytes` may be 0; no pair of numbers overflows.
    [[nodiscard]] MemoryView find(Rkey key, Pd pd, Rights wanted, std::uint64_t address,
                                  std::uint64_t bytes) const noexcept;
    // A peer's invalidation: the region's key dies. It must be of this domain and allow that.
    [[nodiscard]] MemoryVerdict judge_invalidate(Rkey key, Pd pd) const noexcept;
    void invalidate(Rkey key) noexcept { (void)destroy_region(key); }

    [[nodiscard]] std::uint32_t regions_in_use() const noexcept { return in_use_; }

private:
    struct Region {
        Rkey key{};
        Pd pd{};
        std::uint64_t base = 0;
        std::uint64_t bytes = 0;
        std::uint8_t* data = nullptr;
        std::uint32_t generation = 0;
        Rights rights{};
        bool live = false;
    };
    struct Domain {
        std::uint32_t users = 0;
        bool live = false;
    };

    [[nodiscard]] Rkey make_key(std::uint32_t index, std::uint32_t generation) const noexcept;
    [[nodiscard]] const Region* at(Rkey key) const noexcept;
    [[nodiscard]] Domain* domain(Pd pd) noexcept;

    Seed seed_;
    std::uint32_t index_shift_;  // the index is what is left of a key above these bits
    std::uint32_t in_use_ = 0;
    std::vector<Region> regions_;
    std::vector<std::uint32_t> free_;  // indices, the one free for longest first
    std::uint32_t free_head_ = 0;
    std::vector<Domain> domains_;  // Pd p is at p - 1
};

}  // namespace cairn::roce::rc
