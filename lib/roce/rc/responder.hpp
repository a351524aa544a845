// Responder: takes the peer's requests, acts on memory, and answers (IBTA vol. 1, 9.7.4, 9.7.5).
#pragma once

#include <array>
#include <cstdint>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/xrc.hpp"
#include "lib/roce/rc/counters.hpp"
#include "lib/roce/rc/held_packets.hpp"
#include "lib/roce/rc/judge_request.hpp"
#include "lib/roce/rc/out_packet.hpp"

namespace cairn::roce::rc {

// A READ, atomic, ATOMIC WRITE or FLUSH that was executed: kept until `max_dest_rd_atomic` newer ones came, so that the
// peer can ask again (9.7.4, 9.7.5). A READ reads memory again, an atomic keeps what it found; the other two are
// answered like a READ of no bytes (annex A19; so does Linux rxe).
struct SavedAnswer {
    wire::Operation operation{};
    bool queued = false;    // packets `next` ... `until` are still to be sent
    bool answered = false;  // all were sent once: if queued, then because the peer asked again
    Psn first{};            // of the original request
    Psn last{};
    Psn from{};  // READ: the PSN asked for last, whose response is a First or Only
    Psn next{};
    Psn until{};
    Msn msn{};
    Rkey rkey{};
    std::uint64_t address = 0;   // READ: of `first`
    std::uint32_t bytes = 0;     // READ: of the whole
    std::uint32_t end = 0;       // READ: behind the last byte asked for last, counted from `first`
    Pd pd{};                     // by whose rights
    std::uint64_t original = 0;  // atomic: what stood in memory
};

// Who makes memory that peers wrote safe from power failures, or seen by whoever would not see it otherwise: called
// before a FLUSH is answered; false: it could not. Without one no FLUSH for persistence is allowed.
struct FlushHook {
    bool (*flush)(void* owner, std::span<std::uint8_t> memory, bool persistent) noexcept = nullptr;
    void* owner = nullptr;
};

// What the queue pair must do about a packet.
enum class ResponderResult : std::uint8_t {
    Ok,
    RequestError,  // stop: the peer asked what it may not (its NAK is still to be polled)
    AccessError,   // stop: likewise, for memory
    LocalError,    // stop: our own receive request was wrong, as its completion says
    FlushError,    // stop: memory could not be made safe
    CqOverrun,     // stop: a completion was lost
};

// What a responder uses and others may share; all outlive it.
struct ResponderContext {
    MemoryTable& memory;
    RcCounters& counters;
    ReceiveQueue* receives = nullptr;  // this and the next: not an XRC target's
    CompletionQueue* completions = nullptr;
    FlushHook flush{};
    HeldPackets* held = nullptr;
    XrcTarget xrc{};
};

// One queue pair's. No I/O, no clock, no allocation. Answers go out in the order of PSNs: saved answers first, then
// one acknowledgement for all up to the last good packet, or a NAK.
class Responder {
public:
    Responder(Qpn qpn, const ResponderContext& context, wire::Service service = wire::Service::Rc) noexcept;

    // From RTR on: forgets all earlier and expects attributes.receive_psn. `attributes` outlive the responder. `pd`: no
    // XRC target's.
    void start(const QpAttributes& attributes, Pd pd) noexcept;

    // A request packet that is for this queue pair. Changes all outputs. Unreliable: a message that lacks a packet, or
    // that is refused, is dropped, what of it was placed stays; no answer is ever made (9.8.2, 9.8.3).
    // Selective: a packet that comes early is kept, if it is offered, and taken in its turn.
    [[nodiscard]] ResponderResult on_request(const wire::Packet& packet, const PacketOffer& offer, bool& kept) noexcept;
    // Gives back what is kept: the queue pair ends.
    void drop_held() noexcept;
    // Likewise, and goes on: the peer is asked for it again once what is missing has come.
    void give_held_up() noexcept;
    [[nodiscard]] bool holds() const noexcept { return !chain_.empty(); }
    // The queue pair stops: but for the NAK of a refused request and the answers before it nothing leaves any more. The
    // receive request of a SEND that did not end completes as flushed, or is lost to an overrun.
    void stop() noexcept;
    void drop_answers() noexcept;  // nor those before the NAK: its owner stops the queue pair

    // The next answer packet; false: none. Changes by on_request() alone. A READ whose region or right is gone ends in
    // a NAK and sets failed().
    [[nodiscard]] bool poll_response(OutPacket& out) noexcept;
    [[nodiscard]] bool has_response() const noexcept { return queued_answers_ != 0 || reply_ != Reply::None; }
    [[nodiscard]] bool owes_only_acknowledgement() const noexcept {
        return queued_answers_ == 0 && reply_ == Reply::Ack;
    }
    // The next one carries no data that was read.
    [[nodiscard]] bool has_short_response() const noexcept {
        return queued_answers_ != 0 ? saved_[oldest_queued()].operation != wire::Operation::ReadRequest
                                    : reply_ != Reply::None;
    }
    [[nodiscard]] bool failed() const noexcept { return failed_; }

    // A SEND is under way into a request of this XRC receive queue.
    [[nodiscard]] bool receives_into(Srqn srqn) const noexcept {
        return message_.kind == MessageKind::Send && receiver_.srqn == srqn;
    }

    [[nodiscard]] Psn expected_psn() const noexcept { return expected_; }
    [[nodiscard]] Msn msn() const noexcept { return msn_; }
    void check_invariants() const noexcept;

private:
    enum class Reply : std::uint8_t { None, Ack, Nak };

    [[nodiscard]] KeyUser key_user() const noexcept { return {receiver_.pd, qpn_}; }
    [[nodiscard]] Completion receive_completion(std::uint64_t wr_id, CompletionStatus status) const noexcept;

    [[nodiscard]] bool find_receiver(const wire::Packet& packet) noexcept;
    [[nodiscard]] RequestVerdict judge(const wire::Packet& packet) const noexcept;
    [[nodiscard]] RequestVerdict judge_receive(const wire::Packet& packet) const noexcept;
    [[nodiscard]] RequestVerdict judge_depth(const wire::Packet& packet) const noexcept;

    [[nodiscard]] ResponderResult on_unreliable(const wire::Packet& packet) noexcept;
    void cut_short(RcCounter reason) noexcept;
    [[nodiscard]] const ReceiveWqe* next_receive() const noexcept;
    [[nodiscard]] ReceiveWqe take_receive() noexcept;

    [[nodiscard]] ResponderResult act(const wire::Packet& packet) noexcept;
    [[nodiscard]] ResponderResult refuse(RequestVerdict verdict) noexcept;
    [[nodiscard]] bool on_gap(const wire::Packet& packet, const PacketOffer& offer) noexcept;
    [[nodiscard]] ResponderResult take(const wire::Packet& packet) noexcept;
    [[nodiscard]] ResponderResult take_held() noexcept;
    [[nodiscard]] bool try_hold(const wire::Packet& packet, const PacketOffer& offer) noexcept;
    [[nodiscard]] bool lacks_dropped() noexcept;
    void note_dropped(Psn psn) noexcept;
    [[nodiscard]] bool is_selective() const noexcept { return held_ != nullptr && attributes_->selective; }
    void on_duplicate(const wire::Packet& packet) noexcept;
    void ask_again(SavedAnswer& saved, const wire::Packet& packet) noexcept;

    [[nodiscard]] bool place_payload(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_send(const wire::Packet& packet) noexcept;
    void execute_write(const wire::Packet& packet) noexcept;
    void execute_read(const wire::Packet& packet) noexcept;
    void execute_atomic(const wire::Packet& packet) noexcept;
    void execute_atomic_write(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_flush(const wire::Packet& packet) noexcept;
    // What has an answer of its own. False: it failed, and there is none.
    [[nodiscard]] bool execute_answered(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool fits(const SavedAnswer& saved, const wire::Packet& packet) const noexcept;
    [[nodiscard]] std::uint32_t offset_of(Psn psn, const SavedAnswer& saved) const noexcept;
    [[nodiscard]] std::uint32_t responses_for(std::uint32_t bytes) const noexcept;
    [[nodiscard]] bool complete_message(const wire::Packet& packet) noexcept;
    [[nodiscard]] SavedAnswer& save(const wire::Packet& packet, std::uint32_t responses) noexcept;
    [[nodiscard]] SavedAnswer& saved_at(std::uint32_t number) noexcept { return saved_[number % kMaxRdAtomic]; }
    [[nodiscard]] SavedAnswer* find_saved(Psn psn) noexcept;
    // Where it is among the saved ones; there is one (asserted).
    [[nodiscard]] std::size_t oldest_queued() const noexcept;
    [[nodiscard]] std::uint32_t oldest_saved() const noexcept;

    void emit_answer(OutPacket& out, SavedAnswer& saved) noexcept;
    [[nodiscard]] bool emit_read(OutPacket& out, SavedAnswer& saved) noexcept;
    void emit_map(OutPacket& out) noexcept;
    void emit_reply(OutPacket& out, Psn psn, const wire::Aeth::Syndrome& syndrome) noexcept;
    [[nodiscard]] wire::Bth bth(Psn psn) const noexcept;
    void flush_unfinished() noexcept;
    void owe_ack() noexcept;
    void owe_nak(const wire::Aeth::Syndrome& syndrome) noexcept;

    const Qpn qpn_;
    MemoryTable& memory_;
    RcCounters& counters_;
    const wire::Service service_;
    const bool reliable_;
    const FlushHook flush_;
    HeldPackets* const held_;
    const XrcTarget xrc_;
    const QpAttributes* attributes_ = nullptr;
    Receiver receiver_;  // an XRC target's: of the request looked at last, and good for no longer than that

    Psn expected_{};
    Msn msn_{};  // messages completed
    InboundMessage message_{};
    ReceiveWqe receive_{};        // of message_, when it is a SEND
    bool receive_kept_ = false;   // of a SEND that was cut short: the next to be taken
    Reply reply_ = Reply::None;   // goes out behind the saved answers
    wire::Aeth::Syndrome nak_{};  // when reply_ is Nak
    bool awaits_resend_ = false;  // a NAK asked for expected_: others are dropped in silence (9.7.5.2.8)
    HeldPackets::Chain chain_{};  // requests that came early
    bool dropped_ = false;        // some came early behind the chain and found no room: up to this one
    Psn dropped_until_{};
    std::array<std::uint8_t, kHeldMapBytes> map_{};  // of the NAK on its way out
    bool failed_ = false;                            // nothing is executed any more
    std::uint32_t unacknowledged_ = 0;               // messages ended since the last answer
    std::uint32_t saved_count_ = 0;                  // answers ever saved; the newest is at saved_count_ - 1
    std::uint32_t queued_answers_ = 0;
    std::uint32_t copied_answers_ = 0;  // packets of answers that are not sent from where they lie
    std::array<SavedAnswer, kMaxRdAtomic> saved_{};
};

}  // namespace cairn::roce::rc
