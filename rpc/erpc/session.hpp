// Sessions and their slots: plain state, changed only by Endpoint.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "lib/base/time.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/dcqcn.hpp"
#include "lib/roce/pace/paid_time.hpp"
#include "lib/roce/pace/round_trip.hpp"
#include "lib/roce/ud/mux.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/limits.hpp"
#include "rpc/erpc/transfer.hpp"

namespace cairn::erpc {

constexpr std::uint32_t kNone = 0xffffffffU;  // no call, no slot, no session

enum class SessionState : std::uint8_t {
    Free,
    Connecting,     // client: Connect sent, waits for Accepted or Refused
    Connected,      // client: calls flow
    Disconnecting,  // client: Disconnect sent, waits for Disconnected
    Serving,        // server
};

// One request in flight at the client. A slot is busy while `call` names one.
struct ClientSlot {
    std::uint64_t request_number = 0;  // of the request in flight, or of the next one
    Instant first_sent{};
    Instant last_sent{};
    ClientSlot* older = nullptr;  // neighbours in SentSlots
    ClientSlot* newer = nullptr;
    std::uint32_t call = kNone;
    std::uint16_t session = 0;
    std::uint8_t sends = 0;              // 0: waits for a credit
    ClientTransfer* transfer = nullptr;  // of messages of several packets

    [[nodiscard]] std::uint32_t index() const noexcept { return request_number % kSlotsPerSession; }
    // The server holds memory for it until it goes on.
    [[nodiscard]] bool is_under_way() const noexcept { return transfer != nullptr && transfer->answered.end() != 0; }
};

// Sent slots in order of their last sending.
class SentSlots {
public:
    [[nodiscard]] ClientSlot* oldest() const noexcept { return oldest_; }
    [[nodiscard]] ClientSlot* newest() const noexcept { return newest_; }
    void add(ClientSlot& slot) noexcept {
        slot.older = newest_;
        slot.newer = nullptr;
        (newest_ != nullptr ? newest_->newer : oldest_) = &slot;
        newest_ = &slot;
    }
    void remove(ClientSlot& slot) noexcept {
        (slot.older != nullptr ? slot.older->newer : oldest_) = slot.newer;
        (slot.newer != nullptr ? slot.newer->older : newest_) = slot.older;
    }

private:
    ClientSlot* oldest_ = nullptr;
    ClientSlot* newest_ = nullptr;
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
    std::uint8_t request_type = 0;
    ServerSlotState state = ServerSlotState::Idle;
    bool resent = false;             // the answer, at least once
    std::uint8_t answered_turn = 0;  // in which the answer was sent last, counted by ServerMessages; wraps
    std::uint32_t request_packets = 1;
    std::uint32_t newest_rfr = 0;   // index of the response packet asked for last
    std::uint32_t answered_us = 0;  // when the answer was sent last, roughly; wraps
    ServerTransfer* transfer = nullptr;
};
static_assert(sizeof(ServerSlot) == 64, "a cache line");

struct Session {
    SessionState state = SessionState::Free;
    std::uint8_t free_slots = 0;     // client: bit per slot without a call
    std::uint8_t stalled_slots = 0;  // client: bit per slot that waits for a credit
    std::uint8_t yielded_slots = 0;  // client: those of them that gave theirs up
    bool in_stall_queue = false;
    std::uint8_t paced_slots = 0;  // client: bit per slot that waits for the rate
    std::uint8_t paced_turn = 0;   // which of them is first
    bool in_wheel = false;         // then the wheel wakes them
    bool selective = false;        // both ends hold packets that arrive early
    std::uint16_t credits = 0;     // client: packets it may still send
    std::uint16_t credits_max = 0;
    SessionId self{};
    SessionId remote{};
    std::uint16_t place = 0;  // among the open sessions
    roce::UdAddress peer{};
    wire::RawUd header{};  // ready-made BTH and DETH towards the peer
    std::uint64_t token = 0;
    std::uint64_t cookie = 0;         // from the server's challenge, 0: none came yet; then the newest Ping's number
    std::uint64_t first_request = 0;  // drawn by the server: where the numbers begin, before the slots' first requests
    Instant last_heard{};             // of what is no copy of anything earlier
    Instant last_control{};           // client: last Connect, Disconnect or Ping sent
    Instant opened{};
    roce::RoundTrip round_trip;
    std::unique_ptr<roce::CongestionControl> control;                      // client: nullptr: none
    roce::PaidTime paid;                                                   // client: by the flow's rate
    roce::DcqcnNotificationPoint notification{roce::kDcqcn.cnp_interval};  // of marks on the peer's packets
    std::uint32_t backlog_head = kNone;                                    // calls that wait for a slot, oldest first
    std::uint32_t backlog_tail = kNone;
    std::unique_ptr<std::array<ClientSlot, kSlotsPerSession>> client_slots;
    std::unique_ptr<std::array<ServerSlot, kSlotsPerSession>> server_slots;

    [[nodiscard]] bool is_with(const roce::UdAddress& other) const noexcept {
        return peer.path == other.path && peer.qpn == other.qpn;
    }
    void end_stall(std::uint32_t slot_index) noexcept {
        stalled_slots = static_cast<std::uint8_t>(stalled_slots & ~(1U << slot_index));
        yielded_slots = static_cast<std::uint8_t>(yielded_slots & stalled_slots);
    }
    // It was sent, and waits for a credit to be sent again.
    [[nodiscard]] bool has_yielded(const ClientSlot& slot) const noexcept {
        return ((yielded_slots >> slot.index()) & 1U) != 0;
    }
    // Packets of the slot on their way, each of which holds a credit.
    [[nodiscard]] std::uint32_t credits_held(const ClientSlot& slot) const noexcept {
        return slot.transfer != nullptr ? slot.transfer->outstanding() : slot.sends != 0 && !has_yielded(slot) ? 1 : 0;
    }
    // The slots that wait for a credit while the server holds memory for them.
    [[nodiscard]] std::uint8_t stalled_under_way() const noexcept {
        std::uint32_t under_way = 0;
        for (std::uint32_t left = stalled_slots; left != 0; left &= left - 1) {
            const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(left));
            under_way |= (*client_slots)[slot_index].is_under_way() ? 1U << slot_index : 0U;
        }
        return static_cast<std::uint8_t>(under_way);
    }
    // New requests take no credit from those that wait for one in the midst.
    [[nodiscard]] bool others_go_first() const noexcept { return yielded_slots != 0 || stalled_under_way() != 0; }
    // Retransmission timeout from the round trips seen, in [kRtoMin, kRtoMax], doubled per resend.
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
    void charge(std::size_t bytes, Instant now) noexcept {
        if (control != nullptr && !control->is_uncongested()) [[unlikely]] {
            control->on_sent(bytes, now);
            paid.charge(control->gap(bytes), now);
        }
    }
};

// What a session costs that was opened and not called over: itself, its place in the tables (free and open lists, stall
// queue) and a server's entries by token and by source.
constexpr std::size_t kIdleSessionBytes = sizeof(Session) + 2 + 2 + 4 + 32 + 32;
static_assert(kIdleSessionBytes <= 512);

}  // namespace cairn::erpc
