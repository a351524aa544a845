// The memory of a server's slots in the message pool. It holds requests that are being assembled, and answers that
// clients may ask for again. ServerMessages decides how much a session or host may hold, and when memory is given up.
// Memory that waits to be sent is not reused.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "lib/base/sip_hash.hpp"
#include "lib/roce/send/sender.hpp"
#include "rpc/common/fixed_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/drops.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/erpc/judge.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// How long a slot keeps memory that its client does not use.
struct Patience {
    Duration request = kRtoMax * 5;      // a half-received request whose client is silent
    Duration answer = kPeerTimeout * 2;  // an answer that is not asked for any more
    // Either of the two while memory is wanted. A client notices a loss earlier than that, even two in a row.
    Duration pressed = milliseconds(50);
    // A message that goes on while memory is wanted: a half-received request or a half-read answer. A millisecond is
    // added for each kSlowestBytesPerMs.
    Duration slow = milliseconds(250);
};

// Returns the bytes that requests leave free for answers: for the longest answer, or for many short ones.
[[nodiscard]] inline std::uint64_t room_for_answers(const rpc::MsgPool& pool,
                                                    std::uint32_t message_bytes_max) noexcept {
    const std::uint64_t all = pool.capacity_bytes();
    return std::min(all / 4, std::max(std::uint64_t{rpc::MsgPool::bytes_for(message_bytes_max)}, all / 64));
}

class ServerMessages {
public:
    static constexpr std::uint32_t kSlowestBytesPerMs = 4096;

    // The size of the longest message, and of the packets that it is cut into.
    struct Sizes {
        std::uint32_t message_bytes_max;
        std::uint32_t packet_bytes;
    };

    // The references outlive this object. `key`: a secret, which decides which hosts share one quota.
    ServerMessages(rpc::MsgPool& pool, roce::Sender& sender, Statistics& statistics, const Sizes& sizes,
                   std::uint32_t transfers_max, const Patience& patience, const SipKey& key)
        : pool_(pool),
          sender_(sender),
          statistics_(statistics),
          patience_(patience),
          key_(key),
          bytes_for_answers_(room_for_answers(pool, sizes.message_bytes_max)),
          longest_request_(std::min(sizes.message_bytes_max, pool.longest_message())),
          packet_bytes_(sizes.packet_bytes),
          transfers_max_(transfers_max),
          transfers_(transfers_max) {}

    // Begins to receive a request into the slot. Returns false, and counts, if there is no memory for it now, or its
    // session or host has its share. The client then tries again.
    [[nodiscard]] bool begin_request(Session& session, ServerSlot& slot, const Header& header, Instant now) noexcept;
    // Releases a half-received request. Its late packets find it GivenUp.
    void end_request(ServerSlot& slot) noexcept;
    // Returns a whole request, which the caller releases. The slot becomes Executing.
    [[nodiscard]] rpc::MsgBuffer take_request(ServerSlot& slot) noexcept;

    // Called before the slot's next request is executed. Returns true if the slot has room for an answer of `bytes` and
    // need not leave its memory to a request that waits. While memory is scarce the slot keeps no more than `bytes`
    // needs, since a handler may take any time. If it returns false the slot may have lost its last answer, which its
    // client has read; nothing else of the slot is changed.
    [[nodiscard]] bool has_room(ServerSlot& slot, std::uint32_t bytes, Instant now) noexcept;
    // A client is far ahead of its server if it gave up many calls in a row and none of them arrived. It has confirmed
    // that `number` is its own. Releases what the slot held; the slot waits for that request.
    void skip_to(ServerSlot& slot, std::uint64_t number) noexcept;
    // Replaces what the slot held by room for an answer of `bytes`. Returns false if there is no room.
    [[nodiscard]] bool make_room(ServerSlot& slot, std::uint32_t bytes) noexcept;
    // Lets the slot go on to request `number`. Afterwards no packet that waits refers to the last answer. The next
    // request proves that the client read that answer, with three exceptions. The answer was sent again, it was sent in
    // this very turn, or requests were skipped.
    void retire_answer(ServerSlot& slot, std::uint64_t number) noexcept {
        if (slot.resent || slot.answered_turn == turn_ ||
            numbers_ahead(number, slot.request_number) != kSlotsPerSession) [[unlikely]] {
            settle(slot.response.span());
            slot.resent = false;
        } else if (slot.response.bytes >= kTailBytes && sender_.holds_back()) [[unlikely]] {
            sender_.copy_tails(slot.response.span());  // its client gave the call up before the answer left
        }
        slot.response.bytes = 0;
    }
    // Called before an answer is sent. While memory is scarce the answer keeps no more memory than it needs.
    void fit_answer(ServerSlot& slot, Instant now) noexcept {
        if (!fits_anyway(now)) [[unlikely]] {
            move_to_fitting(slot);
        }
    }
    // True if fit_answer() has nothing to do, because memory is not scarce.
    [[nodiscard]] bool fits_anyway(Instant now) const noexcept { return now >= scarce_until_; }
    // Releases the slot's answer, also if it still waits to be sent.
    void forget_answer(ServerSlot& slot) noexcept;
    void release(ServerSlots& slots) noexcept;
    // Notes that a part of the slot's answer leaves, for the first time or again. While memory is scarce, sending it
    // again does not prolong its time.
    void note_sent(ServerSlot& slot, bool again, Instant now) const noexcept {
        if (!again || now >= scarce_until_) {
            slot.answered_us = microseconds_of(now);
        }
        slot.answered_turn = turn_;
    }
    // Afterwards no packet that waits refers to `payload`.
    void settle(std::span<const std::uint8_t> payload) noexcept {
        if (payload.size() >= kTailBytes) {
            sender_.settle_tails(payload);
        }
    }

    void on_turn() noexcept { ++turn_; }
    // Notes that a request or a response found no memory. `bytes`: size that an answer lacked, for which other slots
    // must make room.
    void want(std::uint32_t bytes) noexcept {
        wanted_.bytes += bytes;
        wanted_.newly += bytes;
        short_ = true;
    }
    [[nodiscard]] bool wanted(Instant now) const noexcept { return wanted_.bytes != 0 || now < scarce_until_; }

    // Returns the size of the longest request that the whole pool can take.
    [[nodiscard]] std::uint32_t longest_request() const noexcept { return longest_request_; }

    // Called each scan, before give_up_old() for the slots of some sessions. Returns true if memory is wanted; the
    // caller then looks at many sessions.
    [[nodiscard]] bool on_scan(Instant now) noexcept;
    void give_up_old(ServerSlots& slots, Instant now) noexcept;

private:
    static constexpr std::uint32_t kYieldsPerScan = 8;  // few, so that a hopeless wish costs the others little

    // Bytes that the answers of postponed requests lacked.
    struct Wishes {
        std::uint64_t bytes = 0;  // since the scan before the last
        std::uint64_t newly = 0;  // since the last scan
    };
    struct Holding {
        std::uint64_t bytes = 0;
        std::uint32_t requests = 0;
        Instant pressed_until{};  // its requests are given up early until then, since one found no room
    };

    [[nodiscard]] static std::uint32_t microseconds_of(Instant now) noexcept {  // roughly; wraps
        return static_cast<std::uint32_t>(now.ns >> 10);
    }
    [[nodiscard]] std::uint8_t share_of(const Session& session) const noexcept;
    void press(Holding& holding, Instant now) noexcept;
    [[nodiscard]] bool within_share(const Session& session, std::uint8_t source, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool is_overdue(const ServerTransfer& transfer, Instant now) const noexcept;
    [[nodiscard]] bool is_stale(const ServerSlot& slot, Instant now) const noexcept;
    void account(ServerTransfer& transfer, int sign) noexcept;
    [[nodiscard]] rpc::MsgBuffer give_back(ServerSlot& slot) noexcept;
    void drop_answer(ServerSlot& slot) noexcept;
    void move_to_fitting(ServerSlot& slot) noexcept;

    rpc::MsgPool& pool_;
    roce::Sender& sender_;
    Statistics& statistics_;
    Patience patience_;
    SipKey key_;
    std::uint64_t bytes_for_answers_;  // bytes that half-received requests leave free
    std::uint32_t longest_request_;
    std::uint32_t packet_bytes_;
    std::uint32_t transfers_max_;
    rpc::FixedTable<ServerTransfer> transfers_;
    Holding all_;                           // half-received requests
    std::array<Holding, 256> by_source_{};  // the same by hash of their host
    Wishes wanted_;
    std::uint32_t yields_left_ = 0;  // slots that may still be made to yield before the next scan
    Instant last_scan_{};
    Instant patient_until_{};  // gives nothing up until then: after a pause of our own, clients get time first
    Instant scarce_until_{};   // memory is scarce until then
    Instant hurry_until_{};    // old messages are given up early until then: memory or a client's share was short
    bool short_ = false;       // a request or a response found no memory since the last scan
    std::uint8_t turn_ = 0;
};

}  // namespace cairn::erpc
