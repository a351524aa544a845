// Responder: judges and executes the peer's requests, and answers them (IBTA vol. 1, 9.7.4, 9.7.5).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/xrc.hpp"
#include "lib/roce/rc/counters.hpp"
#include "lib/roce/rc/delayed_acks.hpp"
#include "lib/roce/rc/early_requests.hpp"
#include "lib/roce/rc/judge_request.hpp"
#include "lib/roce/rc/out_packet.hpp"
#include "lib/roce/rc/saved_answers.hpp"

namespace cairn::roce::rc {

// Lets the owner make memory that peers wrote safe from power failures, or visible to readers that would not see it
// otherwise. Called before a FLUSH is answered. Returns false if it could not. Without a hook a FLUSH for persistence
// is refused.
struct FlushHook {
    bool (*flush)(void* owner, std::span<std::uint8_t> memory, bool persistent) noexcept = nullptr;
    void* owner = nullptr;
};

// The reason why the queue pair must stop after a packet.
enum class ResponderStop : std::uint8_t {
    RequestError,  // the peer asked for something forbidden (its NAK is still to be polled)
    AccessError,   // the peer asked for forbidden memory (its NAK is still to be polled)
    LocalError,    // our own receive request was wrong, as its completion shows
    FlushError,    // memory could not be made safe
    CqOverrun,     // a completion was lost
};

// The objects that a responder uses and may share with others. All of them outlive the responder.
struct ResponderContext {
    MemoryTable& memory;
    RcCounters& counters;
    ReceiveQueue* receives = nullptr;        // not for an XRC target, whose requests name theirs
    CompletionQueue* completions = nullptr;  // not for an XRC target
    FlushHook flush{};
    HeldPackets* held = nullptr;  // nullptr: early packets are dropped
    XrcTarget xrc{};
    EventSink* writes = nullptr;  // notified of each WRITE without immediate data, once all of it lies in memory
};

// Part of a queue pair. No I/O, no clock, no allocation. Answers leave in the order of PSNs: saved answers first, then
// one acknowledgement of everything up to the last good packet, or a NAK.
class Responder {
public:
    Responder(Qpn qpn, const ResponderContext& context, wire::Service service = wire::Service::Rc);

    // Forgets everything and expects attributes.receive_psn. `attributes` outlive the responder. An XRC target has no
    // `pd`.
    void start(const QpAttributes& attributes, Pd pd) noexcept;

    // Takes a request packet for this queue pair; every output may change. With a selective peer, an early packet that
    // is offered is kept, and taken in its turn. On an unreliable service, a message that lacks a packet or is refused
    // is dropped. Its bytes that were placed stay, and no answer is made (9.8.2, 9.8.3).
    [[nodiscard]] std::optional<ResponderStop> on_request(const wire::Packet& packet, const PacketOffer& offer,
                                                          bool& kept, Instant now) noexcept;
    // Notes that the acknowledgement is owed if it is due. Spurious calls are harmless.
    void on_timeout(Instant now) noexcept;
    // Returns when on_timeout() is due. on_request() and answers that leave change it.
    [[nodiscard]] Instant next_deadline() const noexcept { return delayed_acks_.due(); }
    // Gives back the packets that are kept, when the queue pair ends.
    void drop_held() noexcept { early_.release_all(); }
    // Gives back the packets that are kept, and goes on. The peer is asked for them again once the missing ones have
    // come.
    void give_held_up() noexcept;
    [[nodiscard]] bool holds() const noexcept { return !early_.empty(); }
    // Stops the responder with its queue pair. Only the NAK of a refused request and the answers before it still leave.
    // The receive request of a SEND that did not end completes as flushed, or is lost to an overrun.
    void stop() noexcept;
    // Drops the answers before the NAK, too, when the owner itself stops the queue pair.
    void drop_answers() noexcept { answers_.drop_due(); }

    // Makes the next answer packet. Returns false if there is none; only on_request() changes that. A READ whose region
    // or right is gone ends in a NAK and sets failed(), unless it was answered before and is asked for again.
    [[nodiscard]] bool poll_response(OutPacket& out) noexcept;
    [[nodiscard]] bool has_response() const noexcept { return answers_.any_due() || reply_.kind != Reply::None; }
    [[nodiscard]] bool owes_only_acknowledgement() const noexcept {
        return !answers_.any_due() && reply_.kind == Reply::Ack;
    }
    // Returns true if the next answer carries no data that was read.
    [[nodiscard]] bool has_short_response() const noexcept {
        return answers_.any_due() ? answers_.oldest_due().operation != wire::Operation::ReadRequest
                                  : reply_.kind != Reply::None;
    }
    [[nodiscard]] bool failed() const noexcept { return stage_ == Stage::Failed; }

    // Returns true if a SEND is under way into a request of this XRC receive queue.
    [[nodiscard]] bool receives_into(Srqn srqn) const noexcept {
        return message_.kind == MessageKind::Send && receiver_.srqn == srqn;
    }

    [[nodiscard]] Psn expected_psn() const noexcept { return expected_; }
    [[nodiscard]] Msn msn() const noexcept { return msn_; }
    void check_invariants() const noexcept;

private:
    // The packet that the responder waits for. After a NAK packets after the expected one are dropped in silence until
    // that one comes (9.7.5.2.8).
    enum class Stage : std::uint8_t {
        Running,         // the next request
        AwaitsResend,    // a sequence NAK asked for the expected packet
        AwaitsReceiver,  // an RNR NAK asked for it: the peer is to send it again later
        Failed,          // none: nothing is executed any more
    };
    // The answer that leaves after the saved answers.
    struct Reply {
        enum Kind : std::uint8_t { None, Ack, Nak };
        Kind kind = None;
        wire::Aeth::Syndrome nak{};
    };
    // The receive request of the SEND under way. If a SEND was cut short, its request is kept, and is the next to be
    // taken.
    struct TakenReceive {
        ReceiveWqe wqe{};
        bool is_kept = false;
        std::unique_ptr<Sge[]> many{};  // nullptr: no request has that many SGEs
    };

    [[nodiscard]] KeyUser key_user() const noexcept { return {receiver_.pd, qpn_}; }
    [[nodiscard]] Completion receive_completion(std::uint64_t wr_id, CompletionStatus status) const noexcept;

    [[nodiscard]] bool find_receiver(const wire::Packet& packet) noexcept;
    [[nodiscard]] RequestVerdict judge(const wire::Packet& packet, std::uint8_t*& place) const noexcept;
    [[nodiscard]] RequestVerdict judge_receive(const wire::Packet& packet) const noexcept;
    [[nodiscard]] RequestVerdict judge_depth(const wire::Packet& packet) const noexcept;

    [[nodiscard]] std::optional<ResponderStop> on_unreliable(const wire::Packet& packet) noexcept;
    void cut_short(RcCounter reason) noexcept;
    [[nodiscard]] const ReceiveHead* next_receive() const noexcept;
    void take_receive() noexcept;

    [[nodiscard]] std::optional<ResponderStop> act(const wire::Packet& packet, std::uint8_t* place) noexcept;
    [[nodiscard]] std::optional<ResponderStop> refuse(RequestVerdict verdict) noexcept;
    [[nodiscard]] bool on_gap(const wire::Packet& packet, const PacketOffer& offer) noexcept;
    [[nodiscard]] std::optional<ResponderStop> take(const wire::Packet& packet) noexcept;
    [[nodiscard]] std::optional<ResponderStop> take_held() noexcept;
    [[nodiscard]] bool is_selective() const noexcept { return early_.can_hold() && attributes_->selective; }
    void on_duplicate(const wire::Packet& packet) noexcept;

    [[nodiscard]] bool place_payload(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_send(const wire::Packet& packet) noexcept;
    // Places the payload. Returns false if the memory is not there any more.
    [[nodiscard]] bool execute_write(const wire::Packet& packet, std::uint8_t* place) noexcept;
    void execute_read(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_atomic(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_atomic_write(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool execute_flush(const wire::Packet& packet) noexcept;
    // Executes a request that has an answer of its own. Returns Execute; any other verdict means that it failed, and
    // there is no answer.
    [[nodiscard]] RequestVerdict execute_answered(const wire::Packet& packet) noexcept;
    [[nodiscard]] bool complete_message(const wire::Packet& packet) noexcept;
    [[nodiscard]] SavedAnswer& save(const wire::Packet& packet, std::uint32_t responses) noexcept;

    [[nodiscard]] bool emit_answer(OutPacket& out, SavedAnswer& saved) noexcept;
    [[nodiscard]] std::optional<MemoryRefusal> emit_read(OutPacket& out, SavedAnswer& saved) noexcept;
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
    const XrcTarget xrc_;
    const QpAttributes* attributes_ = nullptr;
    EventSink* const write_sink_;
    Receiver receiver_;  // an XRC target's: of the latest request, and only valid for that one

    Psn expected_{};
    Msn msn_{};  // messages completed
    InboundMessage message_{};
    Stage stage_ = Stage::Running;
    Reply reply_{};
    DelayedAcks delayed_acks_;
    std::uint32_t copied_answers_ = 0;  // packets of answers that are copied before they are sent
    EarlyRequests early_;
    SavedAnswers answers_;
    TakenReceive receive_{};  // last, as the answers before it: packets seldom need them
};

}  // namespace cairn::roce::rc
