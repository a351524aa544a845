// Exchange: frames from worker to worker, where the device cannot steer: a ring per ordered pair of workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/net/address.hpp"

struct rte_mbuf;
struct rte_ring;

namespace cairn::pmd {

// Made on the main thread; then each (from, to) ring has one producer and one consumer thread.
class Exchange {
public:
    enum class Lane : std::uint8_t { Received, ToSend };  // frames to be judged there, frames to be sent from there

    static Result<Exchange> make(std::uint16_t port_id, std::uint16_t workers);
    Exchange(Exchange&& other) noexcept;
    Exchange& operator=(Exchange&&) = delete;
    ~Exchange();  // frees what still lies in the rings

    // False when the ring is full: the frame stays the caller's.
    [[nodiscard]] bool pass(Lane lane, std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept;
    // The same for copies that others can do without: false already when the ring is half full, so that floods of them
    // leave room for frames that belong there.
    [[nodiscard]] bool pass_copy(std::uint16_t from, std::uint16_t to, rte_mbuf* frame) noexcept;
    // Frames for worker `to`, from all others, at most out.size().
    [[nodiscard]] std::size_t collect(Lane lane, std::uint16_t to, std::span<rte_mbuf*> out) noexcept;

    // The worker that owns a queue pair: its number's low bits (DESIGN 3); the management's 0 and 1 are the first's.
    [[nodiscard]] std::uint16_t owner_of(std::uint32_t qpn) const noexcept {
        const auto index = static_cast<std::uint16_t>(qpn & mask_);
        return index < workers_ && qpn > 1 ? index : std::uint16_t{0};
    }
    // To which multicast addresses a worker's frames come: a bit for each, which some share. Said by the worker, read
    // by all.
    [[nodiscard]] static constexpr std::uint64_t bit_of(const net::MacAddress& group) noexcept {
        return std::uint64_t{1} << ((group.octets[5] ^ group.octets[4] * 5U ^ group.octets[3] * 11U) & 63U);
    }
    void set_groups(std::uint16_t worker, std::uint64_t bits) noexcept {
        groups_[worker].store(bits, std::memory_order_relaxed);
    }
    [[nodiscard]] bool has_group(std::uint16_t worker, const net::MacAddress& group) const noexcept {
        return (groups_[worker].load(std::memory_order_relaxed) & bit_of(group)) != 0;
    }
    // Some worker but this one.
    [[nodiscard]] bool others_have_group(std::uint16_t worker, const net::MacAddress& group) const noexcept {
        for (std::uint16_t other = 0; other < workers_; ++other) {
            if (other != worker && has_group(other, group)) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] std::uint16_t workers() const noexcept { return workers_; }
    // Service numbers must be multiples of it, so that number + worker is owned by that worker.
    [[nodiscard]] std::uint32_t qpn_step() const noexcept { return mask_ + 1; }

private:
    explicit Exchange(std::uint16_t workers);
    [[nodiscard]] rte_ring*& ring(Lane lane, std::uint16_t from, std::uint16_t to) noexcept {
        return rings_[(static_cast<std::size_t>(lane) * workers_ + from) * workers_ + to];
    }

    std::uint16_t workers_;
    std::uint32_t mask_;
    std::vector<rte_ring*> rings_;
    std::vector<std::atomic<std::uint64_t>> groups_;  // by worker
};

}  // namespace cairn::pmd
