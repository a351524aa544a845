// Which slots of an address are lent, and which may be lent next.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"
#include "lib/broker/messages.hpp"

namespace cairn::broker {

// The slots of an address. Slot 0 is never lent. A slot that became free rests: its last program's peers may still send
// to it.
class Slots {
public:
    enum class State : std::uint8_t {
        Absent,   // has no socket yet
        Free,     // rests, or has rested
        Lent,     // a program has it
        Unknown,  // of an earlier broker: a program that has not come back may have it
    };

    [[nodiscard]] std::uint16_t sockets() const noexcept { return sockets_; }
    [[nodiscard]] State state(Slot slot) const noexcept { return states_[slot.value]; }

    // Raises the number of sockets to `count`, which is no less than before. The new ones are in that state.
    void grow(std::uint16_t count, State state) noexcept {
        CAIRN_ASSERT(count >= sockets_ && count <= kMostSockets);
        for (; sockets_ < count; ++sockets_) {
            states_[sockets_] = state;
            free_since_[sockets_] = kEver;
        }
    }
    // Lends the slot that has been free for longest, if it is free since `before` or an earlier time.
    [[nodiscard]] std::optional<Slot> lend(Instant before) noexcept {
        std::optional<Slot> longest;
        for (std::uint16_t i = 1; i < sockets_; ++i) {
            if (states_[i] == State::Free && free_since_[i] <= before &&
                (!longest || free_since_[i] < free_since_[longest->value])) {
                longest = Slot{static_cast<std::uint8_t>(i)};
            }
        }
        if (longest) {
            states_[longest->value] = State::Lent;
        }
        return longest;
    }
    // Lends a slot that a program reports to have had. Returns false if another has it, or there is none.
    [[nodiscard]] bool claim(Slot slot) noexcept {
        const bool may = states_[slot.value] == State::Unknown || states_[slot.value] == State::Free;
        states_[slot.value] = may ? State::Lent : states_[slot.value];
        return may;
    }
    void give_back(Slot slot, Instant now) noexcept {
        CAIRN_ASSERT(slot != Slot{} && states_[slot.value] == State::Lent);
        states_[slot.value] = State::Free;
        free_since_[slot.value] = now;
    }

private:
    static constexpr Instant kEver{std::numeric_limits<std::int64_t>::min()};

    std::array<State, kMostSockets> states_{};
    std::array<Instant, kMostSockets> free_since_{};
    std::uint16_t sockets_ = 0;
};

}  // namespace cairn::broker
