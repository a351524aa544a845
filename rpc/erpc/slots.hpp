// What either side of a session keeps of a request: the slots, which request numbers use in turn.
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

// Where a client's slot stands. A slot is in exactly one state; only ClientSession::move() changes it.
enum class SlotState : std::uint8_t {
    Free,         // no call
    WaitsCredit,  // a call that was not sent, or is to begin anew, waits for a credit
    Sent,         // a request of one packet is on its way; it holds a credit
    Yielded,      // the same, but it gave its credit up and waits for one to be sent again
    Moving,       // messages of several packets: what credits and rate allow is on its way
    Starved,      // the same, waits for credits
    HeldBack,     // the same, waits for its flow's time
    Count,
};

// One request in flight at the client.
struct ClientSlot {
    std::uint64_t request_number = 0;  // of the request in flight, or of the next one
    // Of the answer that the short path may take. None: the slot is not Sent, or the request was sent again, or its
    // memory may still be read.
    SecondWord awaited = SecondWord::none();
    Instant first_sent{};
    Instant last_sent{};
    std::uint32_t call = kNone;
    SlotState state = SlotState::Free;
    std::uint8_t sends = 0;              // 0: never; since the last progress
    ClientTransfer* transfer = nullptr;  // of messages of several packets

    [[nodiscard]] std::uint32_t index() const noexcept { return request_number % kSlotsPerSession; }
    // The server holds memory for it until it goes on.
    [[nodiscard]] bool is_under_way() const noexcept { return transfer != nullptr && transfer->answered.end() != 0; }
    // Packets on their way, each of which holds a credit.
    [[nodiscard]] std::uint32_t credits_held() const noexcept {
        return transfer != nullptr ? transfer->outstanding() : state == SlotState::Sent ? 1 : 0;
    }
    // A server may have come by the request's number.
    [[nodiscard]] bool may_be_known() const noexcept { return sends != 0; }
};

enum class ServerSlotState : std::uint8_t {
    Idle,
    Receiving,  // some packets of a request that has several; only then there is a transfer
    GivenUp,    // some packets had come and were let go: it is never executed
    Executing,
    Answered,
    Forgotten,  // it was executed, and its answer let go
};

// The last request accepted in a slot and its answer, kept until the next one arrives or memory is wanted.
struct ServerSlot {
    std::uint64_t request_number = 0;
    rpc::MsgBuffer response{};
    ServerSlotState state = ServerSlotState::Idle;
    bool resent = false;  // the answer, at least once
    std::uint8_t request_type = 0;
    std::uint8_t answered_turn = 0;  // in which the answer was sent last, counted by ServerMessages; wraps
    std::uint32_t request_packets = 1;
    std::uint32_t newest_rfr = 0;   // index of the response packet asked for last
    std::uint32_t answered_us = 0;  // when the answer was sent last, roughly; wraps
    ServerTransfer* transfer = nullptr;
};
static_assert(sizeof(ServerSlot) == 64, "a cache line");

using ServerSlots = std::array<ServerSlot, kSlotsPerSession>;

// Each one request before the client's first.
[[nodiscard]] inline std::unique_ptr<ServerSlots> make_server_slots(std::uint64_t first_request) {
    auto slots = std::make_unique<ServerSlots>();
    for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
        (*slots)[i].request_number = first_request + i;
    }
    return slots;
}

}  // namespace cairn::erpc
