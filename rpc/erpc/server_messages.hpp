// What a server's slots hold of the message pool: requests that are put together, and answers that may be asked for
// again. Who may hold how much, what is given up when, and that nothing changes hands while it waits to be sent.
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

// How long what nobody asks for is kept.
struct Patience {
    Duration request = kRtoMax * 5;  // with a half-received request whose client is silent
    Duration answer = kPeerTimeout * 2;
    // While memory is wanted. A loss, and the loss of what was sent again, are noticed earlier.
    Duration pressed = milliseconds(50);
    // The same, with large messages that go on: half-received requests and half-read answers have this long, and a
    // millisecond for each kSlowestBytesPerMs.
    Duration slow = milliseconds(250);
};

// Bytes for answers, whoever sends requests: for the longest, or for many short ones.
[[nodiscard]] inline std::uint64_t room_for_answers(const rpc::MsgPool& pool,
                                                    std::uint32_t message_bytes_max) noexcept {
    const std::uint64_t all = pool.capacity_bytes();
    return std::min(all / 4, std::max(std::uint64_t{rpc::MsgPool::bytes_for(message_bytes_max)}, all / 64));
}

class ServerMessages {
public:
    static constexpr std::uint32_t kSlowestBytesPerMs = 4096;

    // The largest message, and how it is cut.
    struct Sizes {
        std::uint32_t message_bytes_max;
        std::uint32_t packet_bytes;
    };

    // All outlive it. `key` is secret: it decides which hosts have their share in common.
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

    // The slot receives this request from now on. False, and counted: there is no memory for it now, or its session or
    // its host has its share; the client tries again.
    [[nodiscard]] bool begin_request(Session& session, ServerSlot& slot, const Header& header, Instant now) noexcept;
    // What is there of it is released; its packets that still come find it given up.
    void end_request(ServerSlot& slot) noexcept;
    // A whole one goes to the caller, who releases it. The slot is left to be executed.
    [[nodiscard]] rpc::MsgBuffer take_request(ServerSlot& slot) noexcept;

    // Before the slot's next request is executed: none that waits has to be preferred, and there is room for its answer
    // of `bytes`. While memory is wanted the slot keeps no more than that: its handler may take as long as it likes.
    // False: nothing is changed but by the loss of the last answer, which the client has read.
    [[nodiscard]] bool has_room(ServerSlot& slot, std::uint32_t bytes, Instant now) noexcept;
    // A client that gave up many calls in a row, none of which arrived, is far ahead of its server. Once it has shown
    // that `number` is its own the slot waits for it; what it held is released.
    void skip_to(ServerSlot& slot, std::uint64_t number) noexcept;
    // Room for an answer of `bytes` in the slot, in place of what it held. False: there is none.
    [[nodiscard]] bool make_room(ServerSlot& slot, std::uint32_t bytes) noexcept;
    // The slot goes on to request `number`: what was sent of the last answer is not read any more.
    // The client's next request proves that it read the last one, unless that was sent again or leaves in this very
    // turn, or requests were skipped.
    // mutants: erpc-server-messages-retire-answer
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
    // Before the answer is sent: while memory is wanted it takes no more than it needs.
    void fit_answer(ServerSlot& slot, Instant now) noexcept {
        if (!fits_anyway(now)) [[unlikely]] {
            move_to_fitting(slot);
        }
    }
    // fit_answer() has nothing to do: there is memory enough.
    [[nodiscard]] bool fits_anyway(Instant now) const noexcept { return now >= scarce_until_; }
    // Its memory goes to anybody: it may still have waited to be sent.
    void forget_answer(ServerSlot& slot) noexcept;
    void release(ServerSlots& slots) noexcept;
    // A part of the slot's answer leaves, for the first time or again. While memory is wanted the answer gets no
    // younger by being asked for.
    // mutants: erpc-server-messages-note-sent
    void note_sent(ServerSlot& slot, bool again, Instant now) const noexcept {
        if (!again || now >= scarce_until_) {
            slot.answered_us = microseconds_of(now);
        }
        slot.answered_turn = turn_;
    }
    // Returns when nothing that was sent from there is read any more.
    void settle(std::span<const std::uint8_t> payload) noexcept {
        if (payload.size() >= kTailBytes) {
            sender_.settle_tails(payload);
        }
    }

    void on_turn() noexcept { ++turn_; }
    // Somebody found no memory; `bytes`: for an answer, which the next slots that hold some have to make room for.
    void want(std::uint32_t bytes) noexcept {
        wanted_.bytes += bytes;
        wanted_.newly += bytes;
        short_ = true;
    }
    [[nodiscard]] bool wanted(Instant now) const noexcept { return wanted_.bytes != 0 || now < scarce_until_; }

    // In all the memory there is.
    [[nodiscard]] std::uint32_t longest_request() const noexcept { return longest_request_; }

    // Each scan, then give_up_old() for some sessions' slots. True: memory is wanted, look at many.
    [[nodiscard]] bool on_scan(Instant now) noexcept;
    void give_up_old(ServerSlots& slots, Instant now) noexcept;

private:
    static constexpr std::uint32_t kYieldsPerScan = 8;  // a wish that can not come true costs the others little

    // Bytes that requests which were put off lacked.
    struct Wishes {
        std::uint64_t bytes = 0;  // since the scan before the last
        std::uint64_t newly = 0;  // since the last scan
    };
    struct Holding {
        std::uint64_t bytes = 0;
        std::uint32_t requests = 0;
        Instant pressed_until{};  // somebody found no room in it
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
    std::uint64_t bytes_for_answers_;  // that half-received requests leave
    std::uint32_t longest_request_;
    std::uint32_t packet_bytes_;
    std::uint32_t transfers_max_;
    rpc::FixedTable<ServerTransfer> transfers_;
    Holding all_;                           // of half-received requests
    std::array<Holding, 256> by_source_{};  // the same, by their hosts' hash
    Wishes wanted_;
    std::uint32_t yields_left_ = 0;  // slots that may still have to make room before the next scan
    Instant last_scan_{};
    Instant patient_until_{};  // after an absence of our own: clients that asked meanwhile are heard first
    Instant scarce_until_{};   // memory for answers, or for anything
    Instant hurry_until_{};    // the same, or somebody has his share, or all requests have theirs
    bool short_ = false;       // somebody found no memory since the last scan
    std::uint8_t turn_ = 0;
};

}  // namespace cairn::erpc
