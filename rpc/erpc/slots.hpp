// Slots: the state of a request at either side of a session. Successive calls of a slot have request numbers
// kSlotsPerSession apart.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lib/base/time.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/call.hpp"
#include "rpc/erpc/header_words.hpp"
#include "rpc/erpc/limits.hpp"
#include "rpc/erpc/transfer.hpp"

namespace cairn::erpc {

// The state of a client's slot. Only ClientSession::move() changes it.
enum class SlotState : std::uint8_t {
    Free,         // no call
    WaitsCredit,  // the call was not sent, or must begin anew; it waits for a credit
    Sent,         // a request of one packet is on its way and holds a credit
    Yielded,      // a request of one packet gave its credit up; it waits for one to be sent again
    Moving,       // a call of several packets; all packets that credits and rate allow are on their way
    Starved,      // a call of several packets waits for credits
    HeldBack,     // a call of several packets waits for its flow's time
    Count,
};

// One request in flight at the client.
struct ClientSlot {
    std::uint64_t request_number = 0;  // of the request in flight, or of the next one
    // The second word of the answer that the short path may take. It is none() in three cases: the slot is not Sent;
    // the request was sent again or found no buffer; the request's memory may still be read.
    SecondWord awaited = SecondWord::none();
    Instant last_sent{};
    std::uint32_t call = kNone;
    SlotState state = SlotState::Free;
    std::uint8_t sends = 0;              // 0: never sent; progress takes it back to 1; at most 255
    ClientTransfer* transfer = nullptr;  // only for calls of several packets

    [[nodiscard]] std::uint32_t index() const noexcept { return request_number % kSlotsPerSession; }
    // True if the server has answered packets of the call, and so holds memory for it.
    [[nodiscard]] bool is_under_way() const noexcept { return transfer != nullptr && transfer->answered.end() != 0; }
    // Returns the number of packets on their way. Each holds a credit.
    [[nodiscard]] std::uint32_t credits_held() const noexcept {
        return transfer != nullptr ? transfer->outstanding() : state == SlotState::Sent ? 1 : 0;
    }
    // True if a server may have seen the request's number.
    [[nodiscard]] bool may_be_known() const noexcept { return sends != 0; }
};

enum class ServerSlotState : std::uint8_t {
    Idle,
    Receiving,  // a request of several packets has come in part; only in this state the slot has a transfer
    GivenUp,    // a half-received request was given up; it is never executed
    Executing,
    Answered,
    Forgotten,  // the request was executed, and its answer was given up
    Declined,   // the request's handler has not executed it
};

constexpr std::uint32_t kNoRoom = rpc::MsgBuffer::kNoMessage;  // `bytes` of an answer for which there is no memory

// The last request accepted in a slot, and its answer. The answer is kept until the slot's next request comes or
// ServerMessages gives it up.
struct ServerSlot {
    std::uint64_t request_number = 0;
    rpc::MsgBuffer response{};
    ServerSlotState state = ServerSlotState::Idle;
    bool resent = false;  // the answer was sent again
    std::uint8_t request_type = 0;
    std::uint8_t answered_turn = 0;  // the turn in which the answer was last sent, counted by ServerMessages; wraps
    std::uint32_t request_packets = 1;
    std::uint32_t newest_rfr = 0;   // index of the response packet that was asked for last
    std::uint32_t answered_us = 0;  // when the answer was last sent, in units of 1,024 ns; wraps
    ServerTransfer* transfer = nullptr;
};
static_assert(sizeof(ServerSlot) == 64, "a cache line");

// True if the slot's last request has no answer any more, and never gets one.
[[nodiscard]] inline bool is_unanswered(const ServerSlot& slot) noexcept {
    return slot.state == ServerSlotState::Forgotten || slot.state == ServerSlotState::Declined;
}

using ServerSlots = std::array<ServerSlot, kSlotsPerSession>;

// Returns slots. Each has the number before the client's first request in it.
[[nodiscard]] inline std::unique_ptr<ServerSlots> make_server_slots(std::uint64_t first_request) {
    auto slots = std::make_unique<ServerSlots>();
    for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
        (*slots)[i].request_number = first_request + i;
    }
    return slots;
}

}  // namespace cairn::erpc
