// Exchange: passes frames between workers if the device cannot steer them. Each ordered pair of workers has a ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/net/address.hpp"
#include "lib/port/qpn_owners.hpp"
#include "pmd_glue/heap_block.hpp"

struct rte_mbuf;
struct rte_ring;

namespace cairn::pmd {

// The rings between workers. Made on the main thread. Afterwards each (from, to) ring has one producer thread and one
// consumer thread.
class Exchange {
public:
    enum class Lane : std::uint8_t { Received, ToSend };  // frames that the target judges, and frames that it sends

    // Makes the rings between two workers or more.
    static Result<Exchange> make(std::uint16_t workers);
    Exchange(Exchange&& other) noexcept;
    Exchange& operator=(Exchange&&) = delete;
    ~Exchange();  // frees the frames that are still in the rings

    // Returns false if the ring is full; the frame stays the caller's.
    [[nodiscard]] bool pass(Lane lane, std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept;
    // Passes a copy that the target can do without. Returns false if the ring is half full, so that a flood of copies
    // leaves room for the target's own frames.
    [[nodiscard]] bool pass_copy(std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept;
    // Takes frames for worker `to` from all others, at most out.size().
    [[nodiscard]] std::size_t collect(Lane lane, std::uint16_t to, std::span<rte_mbuf*> out) noexcept;

    [[nodiscard]] const port::QpnOwners& owners() const noexcept { return owners_; }
    // Returns the bit of a multicast address; some addresses share one. A worker sets the bits of the groups whose
    // frames it gets; all workers read them.
    [[nodiscard]] static constexpr std::uint64_t bit_of(const net::MacAddress& group) noexcept {
        return std::uint64_t{1} << ((group.octets[5] ^ group.octets[4] * 5U ^ group.octets[3] * 11U) & 63U);
    }
    void set_groups(std::uint16_t worker, std::uint64_t bits) noexcept {
        groups_[worker].store(bits, std::memory_order_relaxed);
    }
    [[nodiscard]] bool has_group(std::uint16_t worker, const net::MacAddress& group) const noexcept {
        return (groups_[worker].load(std::memory_order_relaxed) & bit_of(group)) != 0;
    }
    // Returns whether another worker has the group.
    [[nodiscard]] bool others_have_group(std::uint16_t worker, const net::MacAddress& group) const noexcept {
        for (std::uint16_t other = 0; other < workers_; ++other) {
            if (other != worker && has_group(other, group)) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] std::uint16_t workers() const noexcept { return workers_; }

private:
    Exchange(std::uint16_t workers, HeapBlock memory);
    [[nodiscard]] rte_ring*& ring(Lane lane, std::uint16_t from, std::uint16_t to) noexcept {
        return rings_[(static_cast<std::size_t>(lane) * workers_ + from) * workers_ + to];
    }

    std::uint16_t workers_;
    port::QpnOwners owners_;
    HeapBlock memory_;  // of the rings
    std::vector<rte_ring*> rings_;
    std::vector<std::atomic<std::uint64_t>> groups_;  // by worker
};

}  // namespace cairn::pmd
