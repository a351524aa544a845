// A client's part of a session: slots, credits, the calls that wait, and the flow to its server.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/paid_time.hpp"
#include "lib/roce/pace/round_trip.hpp"
#include "rpc/common/call_table.hpp"
#include "rpc/erpc/slots.hpp"

namespace cairn::erpc {

// Plain state, changed by Client and ClientTransfers. Made for the session's first call.
struct ClientSession {
    std::uint16_t credits = 0;    // packets it may still send
    bool in_stall_queue = false;  // some slots wait for a credit
    bool watched = false;         // Client looks for its losses
    bool in_wheel = false;        // then the wheel wakes those that are HeldBack
    std::uint8_t paced_turn = 0;  // which of these is first
    std::array<std::uint8_t, static_cast<std::size_t>(SlotState::Count)> members{0xff};  // bit per slot, by its state
    rpc::Backlog backlog;                                                                // calls without a slot
    std::array<ClientSlot, kSlotsPerSession> slots{};
    Instant sampled{};  // when the last round trip was measured: one for each burst
    roce::RoundTrip round_trip;
    std::unique_ptr<roce::CongestionControl> control;  // nullptr: none
    roce::PaidTime paid;                               // by the flow's rate

    [[nodiscard]] std::uint8_t in(SlotState state) const noexcept { return members[static_cast<std::size_t>(state)]; }
    // The only ways in which a slot's state changes. The second is for a slot whose index and state the caller knows:
    // as constants they halve its instructions.
    void move(ClientSlot& slot, SlotState to) noexcept { move(slot, slot.index(), slot.state, to); }
    // mutants: erpc-client-session-move
    void move(ClientSlot& slot, std::uint32_t index, SlotState from, SlotState to) noexcept {
        const auto bit = static_cast<std::uint8_t>(1U << index);
        members[static_cast<std::size_t>(from)] ^= bit;
        members[static_cast<std::size_t>(to)] |= bit;
        slot.state = to;
        slot.awaited = SecondWord::none();
    }
    // The answer to a request that was sent once came after `rtt`.
    void note_round_trip(Duration rtt, Instant now) noexcept {
        if (sampled != now) {
            sampled = now;
            round_trip.sample(rtt);
        }
    }
    // The server has said where the request numbers begin. No slot has a call yet.
    void number_slots(std::uint64_t first_request) noexcept {
        for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
            slots[i].request_number = (first_request + kSlotsPerSession + i) & kRequestNumberMask;
        }
    }
    // Its credit is back. Returns the call it held. A number that no server can have come by is used again.
    // mutants: erpc-client-session-free-slot
    [[nodiscard]] std::uint32_t free_slot(ClientSlot& slot) noexcept {
        move(slot, SlotState::Free);
        if (slot.may_be_known()) {
            slot.request_number = number_of_next(slot.request_number);
        }
        slot.sends = 0;
        return std::exchange(slot.call, kNone);
    }
    // Asserts what must hold between two events. Returns how many slots have a call.
    [[nodiscard]] std::uint32_t check(std::uint16_t credits_max) const noexcept;

    // The slots that wait for a credit.
    [[nodiscard]] std::uint8_t stalled() const noexcept {
        return static_cast<std::uint8_t>(in(SlotState::WaitsCredit) | in(SlotState::Yielded) | in(SlotState::Starved));
    }
    // Those of them for which the server holds memory.
    [[nodiscard]] std::uint8_t stalled_under_way() const noexcept {
        std::uint32_t under_way = 0;
        for (std::uint32_t left = in(SlotState::Starved); left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
            under_way |= slots[slot].is_under_way() ? 1U << slot : 0U;
        }
        return static_cast<std::uint8_t>(under_way);
    }
    // New requests take no credit from those that wait for one in the midst.
    [[nodiscard]] bool others_go_first() const noexcept {
        return in(SlotState::Yielded) != 0 || stalled_under_way() != 0;
    }
    // Retransmission timeout from the round trips seen, in [kRtoMin, kRtoMax], doubled per resend.
    // mutants: erpc-client-session-rto
    [[nodiscard]] Duration rto(std::uint8_t sends) const noexcept {
        return std::min(round_trip.timeout(sends == 0 ? 0U : sends - 1U), kRtoMax);
    }
    // Whether the flow's rate allows a packet now.
    [[nodiscard]] bool may_send(Instant now) const noexcept {
        if (control == nullptr || control->is_uncongested()) [[likely]] {
            return true;
        }
        control->on_timeout(now);
        return !in_wheel && paid.may_send(now);
    }
    // A packet leaves that puts `bytes` on the network.
    // mutants: erpc-client-session-charge
    void charge(std::size_t bytes, Instant now) noexcept {
        if (control != nullptr && !control->is_uncongested()) [[unlikely]] {
            control->on_sent(bytes, now);
            paid.charge(control->gap(bytes), now);
        }
    }
};

}  // namespace cairn::erpc
