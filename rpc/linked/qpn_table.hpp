// Sessions by the numbers of their queue pairs. Each completion looks one up.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/types.hpp"

namespace cairn::rpc {

// A table of fixed size with linear probing. It is at most half full. The engine chooses the numbers, not peers.
// Allocates only when made.
class QpnTable {
public:
    static constexpr std::uint32_t kNone = 0xffffffffU;

    explicit QpnTable(std::uint32_t sessions_max)
        : shift_(32 - static_cast<int>(std::bit_width(2 * sessions_max))), places_(std::size_t{1} << (32 - shift_)) {}

    // Adds a number, which is not 0 and not in the table. The table has fewer than sessions_max.
    void add(Qpn qpn, SessionId session) noexcept {
        std::size_t at = home_of(qpn.value);
        while (places_[at].qpn != 0) {
            at = next(at);
        }
        places_[at] = {qpn.value, session.number()};
    }
    // Removes a number, which is in the table. Later numbers of the same run move up, so that the run has no gap.
    void remove(Qpn qpn) noexcept {
        std::size_t gap = place_of(qpn.value);
        for (std::size_t at = next(gap); places_[at].qpn != 0; at = next(at)) {
            if (distance(home_of(places_[at].qpn), at) >= distance(gap, at)) {
                places_[gap] = places_[at];
                gap = at;
            }
        }
        places_[gap] = {};
    }
    // Returns the session's number, or kNone.
    [[nodiscard]] std::uint32_t find(Qpn qpn) const noexcept {
        const Place& place = places_[place_of(qpn.value)];
        return place.qpn != 0 ? place.session : kNone;
    }

private:
    struct Place {
        std::uint32_t qpn = 0;  // 0 if the place is free
        std::uint16_t session = 0;
    };
    [[nodiscard]] std::size_t home_of(std::uint32_t qpn) const noexcept { return qpn * 0x9e3779b1U >> shift_; }
    [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (places_.size() - 1); }
    [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const noexcept {
        return (to - from) & (places_.size() - 1);
    }
    // Returns the place of the number, or the first free place after its home.
    [[nodiscard]] std::size_t place_of(std::uint32_t qpn) const noexcept {
        std::size_t at = home_of(qpn);
        while (places_[at].qpn != qpn && places_[at].qpn != 0) {
            at = next(at);
        }
        return at;
    }

    int shift_;
    std::vector<Place> places_;
};

}  // namespace cairn::rpc
