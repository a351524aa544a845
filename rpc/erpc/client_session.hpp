// The client's part of a session: slots, credits, waiting calls, and the flow to the server.
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

// Whether slots of a session wait for a credit.
enum class Stall : std::uint8_t {
    None,    // no slot does
    Waits,   // some slots do, and there is no credit
    Listed,  // some slots may, and there may be credits: the session stands in the client's stall queue
};

// Plain state, which Client and ClientTransfers change. It is made for the session's first call.
struct ClientSession {
    std::uint16_t credits = 0;  // packets that the client may still send
    Stall stall = Stall::None;
    bool watched = false;          // SentWatch looks for lost requests of the session
    bool in_wheel = false;         // the timing wheel will wake the slots that are HeldBack
    std::uint8_t paced_turn = 0;   // the HeldBack slot that is served first
    std::uint8_t credit_turn = 0;  // the slot that is served first of those that wait for a credit
    std::array<std::uint8_t, static_cast<std::size_t>(SlotState::Count)> members{0xff};  // by state, a bit per slot
    rpc::Backlog backlog;                                                                // calls without a slot
    std::array<ClientSlot, kSlotsPerSession> slots{};
    Instant sampled{};  // when the last round trip was measured; each burst gives one measurement
    roce::RoundTrip round_trip;
    std::unique_ptr<roce::CongestionControl> control;  // nullptr if the session has none
    roce::PaidTime paid;                               // when the flow's rate allows the next packet

    [[nodiscard]] std::uint8_t in(SlotState state) const noexcept { return members[static_cast<std::size_t>(state)]; }
    // Change a slot's state; no other function does. The second one is for callers that know the slot's index and
    // state: with constants it takes half the instructions.
    void move(ClientSlot& slot, SlotState to) noexcept { move(slot, slot.index(), slot.state, to); }
    void move(ClientSlot& slot, std::uint32_t index, SlotState from, SlotState to) noexcept {
        const auto bit = static_cast<std::uint8_t>(1U << index);
        members[static_cast<std::size_t>(from)] ^= bit;
        members[static_cast<std::size_t>(to)] |= bit;
        slot.state = to;
        slot.awaited = SecondWord::none();
    }
    // Takes a measured round trip: the answer to a request that was sent once came after `rtt`. Only the first answer
    // of a burst counts.
    void note_round_trip(Duration rtt, Instant now) noexcept {
        if (sampled != now) {
            sampled = now;
            round_trip.sample(rtt);
        }
    }
    // Sets the slots' numbers; the server has said where they begin. No slot has a call yet.
    void number_slots(std::uint64_t first_request) noexcept {
        for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
            slots[i].request_number = (first_request + kSlotsPerSession + i) & kRequestNumberMask;
        }
    }
    // Frees the slot, whose credit is back already. Returns its call. The slot uses a request number again if no server
    // can have seen that number.
    [[nodiscard]] std::uint32_t free_slot(ClientSlot& slot) noexcept {
        move(slot, SlotState::Free);
        if (slot.may_be_known()) {
            slot.request_number = number_of_next(slot.request_number);
        }
        slot.sends = 0;
        return std::exchange(slot.call, kNone);
    }
    // Asserts what must hold between two events. Returns how many slots have a call. `credits_max`: the session's
    // credits.
    [[nodiscard]] std::uint32_t check(std::uint16_t credits_max) const noexcept;

    // Returns the slots that wait for a credit.
    [[nodiscard]] std::uint8_t stalled() const noexcept {
        return static_cast<std::uint8_t>(in(SlotState::WaitsCredit) | in(SlotState::Yielded) | in(SlotState::Starved));
    }
    // Makes this slot the last one to be served of those that wait for a credit.
    void comes_last(const ClientSlot& slot) noexcept {
        credit_turn = static_cast<std::uint8_t>((slot.index() + 1) % kSlotsPerSession);
    }
    // Returns the slots that wait for a credit while the server holds memory for them.
    [[nodiscard]] std::uint8_t stalled_under_way() const noexcept {
        std::uint32_t under_way = 0;
        for (std::uint32_t left = in(SlotState::Starved); left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
            under_way |= slots[slot].is_under_way() ? 1U << slot : 0U;
        }
        return static_cast<std::uint8_t>(under_way);
    }
    // True if new requests must leave the credits to slots that wait to go on.
    [[nodiscard]] bool others_go_first() const noexcept {
        return in(SlotState::Yielded) != 0 || stalled_under_way() != 0;
    }
    // Returns the retransmission timeout of a request that was sent `sends` times. It follows from the round trips,
    // doubles with each resend, and lies in [kRtoMin, kRtoMax].
    [[nodiscard]] Duration rto(std::uint8_t sends) const noexcept {
        return std::min(round_trip.timeout(sends == 0 ? 0U : sends - 1U), kRtoMax);
    }
    // True if the flow's rate allows a packet now.
    [[nodiscard]] bool may_send(Instant now) const noexcept {
        if (control == nullptr || control->is_uncongested()) [[likely]] {
            return true;
        }
        control->on_timeout(now);
        return !in_wheel && paid.may_send(now);
    }
    // Charges the flow for a packet that puts `bytes` on the network.
    void charge(std::size_t bytes, Instant now) noexcept {
        if (control != nullptr && !control->is_uncongested()) [[unlikely]] {
            control->on_sent(bytes, now);
            paid.charge(control->gap(bytes), now);
        }
    }
};

}  // namespace cairn::erpc
