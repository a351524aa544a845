// Protection domains, memory regions and windows: the bytes of this process that a work request or a peer may touch
// (IBTA vol. 1, 10.2.3, 10.6).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/roce/qp/limits.hpp"
#include "lib/roce/qp/region_keys.hpp"
#include "lib/roce/qp/rights.hpp"

namespace cairn::roce {

struct RegionRequest {
    Pd pd{};
    std::span<std::uint8_t> memory{};  // stays where it is until destroy_region(); the caller owns it
    std::uint64_t base = 0;            // the address by which requests name its first byte; 0: zero-based
    Rights rights{};
    bool sendable = false;  // the port can send from it without a copy
    // A region of all addresses: reads give zeros, writes are lost. It has a local key only, and no windows. Its memory
    // is kNullBytes zeros, followed by kNullBytes for writes; one look-up reaches no more. `base` and `rights` are
    // ignored.
    bool is_null = false;
};

// Changes to a region. An attribute without a value stays as it is.
struct RegionChange {
    std::optional<Pd> pd{};
    std::optional<Rights> rights{};
    struct Translation {
        std::span<std::uint8_t> memory{};
        std::uint64_t base = 0;
        bool sendable = false;
    };
    std::optional<Translation> translation{};
};

// The queue pair, and its domain, through which a remote key is used.
struct KeyUser {
    Pd pd{};
    Qpn qpn{};
};

// The reason why a request does not reach memory, or does not change what a key leads to.
enum class MemoryRefusal : std::uint8_t {
    UnknownKey,
    WrongPd,  // the key is another domain's, or another queue pair's
    NoRight,
    OutOfRange,
    InUse,     // windows are bound to the region; the window is bound already
    Vanished,  // the memory is not there any more, though the region is
};

struct MemoryView {
    MemoryView() noexcept = default;
    MemoryView(MemoryRefusal why) noexcept : refusal(why) {}  // NOLINT(google-explicit-constructor): it is the view
    MemoryView(std::uint8_t* from, bool is_sendable) noexcept
        : data(from), refusal(std::nullopt), sendable(is_sendable) {}

    std::uint8_t* data = nullptr;  // the range's first byte; nullptr with a refusal
    std::optional<MemoryRefusal> refusal = MemoryRefusal::UnknownKey;
    bool sendable = false;
};
static_assert(sizeof(MemoryView) == 16);  // returned in registers

// All regions, windows and domains of one engine. A region's rkey is also its lkey. It holds the region's index, bits
// that only the seed determines, and a generation. Neither an old key nor one seen on the wire leads to the next one.
// The key of a destroyed region is dead before destroy_region() returns. A window takes the place of a region and has a
// key made in the same way. Its low 8 bits change with each binding; it is no lkey. Driven by the engine's thread;
// lookups allocate nothing.
class MemoryTable {
public:
    using Seed = std::array<std::uint64_t, 2>;  // hard to guess; a test gives its own

    // Makes a table. `regions` is in [1, kMaxRegions] (asserted). Memory is taken for the first RegionKeys::kFirst, and
    // for more when they are needed.
    MemoryTable(std::uint32_t regions, const Seed& seed);

    [[nodiscard]] Pd create_pd();
    // Ends a domain. Returns false and changes nothing if there is no such domain, or regions or queue pairs are still
    // in it.
    [[nodiscard]] bool destroy_pd(Pd pd) noexcept;
    // Keeps a domain in use; a queue pair holds its domain as long as it lives. Returns false if there is no such
    // domain.
    [[nodiscard]] bool hold_pd(Pd pd) noexcept;
    void release_pd(Pd pd) noexcept;

    // Makes a region. Errors: there is no such domain, the rights allow remote writing or atomics without local writing
    // (10.6), the address range wraps, the table is full.
    [[nodiscard]] Result<Rkey> register_region(const RegionRequest& request);
    // Changes the region, or leaves it as it was and returns an error. The key is a new one if the memory changes, so
    // that no old request reaches memory that it never meant. Errors: as register_region(), there is no such region,
    // windows are bound to it.
    [[nodiscard]] Result<Rkey> reregister_region(Rkey key, const RegionChange& change);
    // Ends a region. Returns false if no region has the key, or windows are bound to the region.
    bool destroy_region(Rkey key) noexcept;

    // Makes a window that is bound to nothing. Errors: there is no such domain, the table is full.
    [[nodiscard]] Result<Rkey> create_window(Pd pd, WindowType type);
    // Ends a window. Looks at all but the low 8 bits of the key. Returns false if no window has it.
    bool destroy_window(Rkey key) noexcept;
    // Executes a BindWindow that was posted to the user's queue pair. With a refusal nothing changes (10.6.6.2).
    [[nodiscard]] std::optional<MemoryRefusal> bind_window(const WindowBinding& binding, const KeyUser& user) noexcept;
    // Returns true if windows are bound to the region.
    [[nodiscard]] bool has_windows(Rkey region) const noexcept;
    // Frees all windows that were bound through a queue pair that ends.
    void free_windows(Qpn qpn) noexcept;

    // Finds where [address, address + bytes) of the region lies. `bytes` may be 0. No pair of numbers overflows.
    [[nodiscard]] MemoryView find(Rkey key, Pd pd, Rights wanted, std::uint64_t address,
                                  std::uint64_t bytes) const noexcept;
    // As find(), for a peer's request, in the region or window that has the key. `wanted` is not empty (asserted).
    [[nodiscard]] MemoryView find_remote(Rkey key, const KeyUser& user, Rights wanted, std::uint64_t address,
                                         std::uint64_t bytes) const noexcept;
    // As find_remote(), for all memory that the key reaches.
    [[nodiscard]] std::optional<std::span<std::uint8_t>> find_whole(Rkey key, const KeyUser& user,
                                                                    Rights wanted) const noexcept;
    // Judges an invalidation, by a peer or by ourselves. It frees a type 2B window, and ends a region whose rights
    // allow that (10.6.5).
    [[nodiscard]] std::optional<MemoryRefusal> judge_invalidate(Rkey key, const KeyUser& user) const noexcept;
    // Returns the place of the window that has the key, bound or not; nullopt if it is no window's.
    [[nodiscard]] std::optional<std::uint32_t> find_window(Rkey key) const noexcept;
    // Executes an invalidation that was judged and not refused.
    void invalidate(Rkey key) noexcept;
    // Notes that the memory at `address` is not there any more: each look-up that reaches it is refused from now on.
    void on_vanished(const std::uint8_t* address) noexcept;
    // Returns a range that covers the sendable memory of all regions that ended since the last call, and the bytes
    // between them. It is mostly empty. Called before the owner of that memory can know of the end.
    [[nodiscard]] std::span<const std::uint8_t> take_ended() noexcept { return std::exchange(ended_, {}); }

    [[nodiscard]] std::uint32_t regions_in_use() const noexcept { return in_use_; }  // windows, too

private:
    enum class Kind : std::uint8_t { Region, Null, Window1, Window2B };
    struct alignas(64) Region {
        Rkey key{};
        Pd pd{};
        std::uint64_t base = 0;
        std::uint64_t bytes = 0;
        std::uint8_t* data = nullptr;
        std::uint32_t generation = 0;
        std::uint32_t windows = 0;   // bound to the region
        std::uint32_t bound_to = 0;  // index of a bound window's region
        Qpn qpn{};                   // a bound type 2B window's
        Rights rights{};
        Kind kind = Kind::Region;
        bool bound = false;  // an unbound window has no bytes and no rights
        bool live = false;
        bool sendable = false;
        bool vanished = false;

        [[nodiscard]] static std::optional<MemoryRefusal> judge_user(const Region* region,
                                                                     const KeyUser& user) noexcept;
        [[nodiscard]] bool is_window() const noexcept { return kind == Kind::Window1 || kind == Kind::Window2B; }
        [[nodiscard]] MemoryView view(Rights wanted, std::uint64_t address, std::uint64_t count) const noexcept;
        [[nodiscard]] MemoryView null_view(Rights wanted, std::uint64_t count) const noexcept;
    };
    static_assert(sizeof(Region) == 64);  // a cache line
    struct Domain {
        std::uint32_t users = 0;
        bool live = false;
    };

    [[nodiscard]] Rkey make_key(std::uint32_t index, std::uint32_t generation) const noexcept;
    [[nodiscard]] const Region* at(Rkey key) const noexcept;
    [[nodiscard]] Region* region_at(Rkey key) noexcept;
    [[nodiscard]] std::optional<MemoryRefusal> judge_binding(const WindowBinding& binding, const Region& window,
                                                             const KeyUser& user) const noexcept;
    void unbind(Region& window) noexcept;
    [[nodiscard]] std::optional<Error> judge_region(const RegionRequest& request);
    [[nodiscard]] Result<Region*> take_slot(Pd pd);
    [[nodiscard]] bool grow();
    void give_slot(Region& region) noexcept;
    void note_end(const Region& region) noexcept;
    [[nodiscard]] Domain* domain(Pd pd) noexcept;

    Seed seed_;
    RegionKeys keys_;
    std::uint32_t most_;  // regions
    std::uint32_t in_use_ = 0;
    std::uint32_t bound_2b_ = 0;  // windows of type 2B that are bound
    std::span<const std::uint8_t> ended_{};
    std::vector<Region> regions_;
    std::vector<std::uint32_t> free_;  // indices, the one free for longest first
    std::uint32_t free_head_ = 0;
    std::vector<Domain> domains_;  // Pd p is at p - 1
};

}  // namespace cairn::roce
