// One connection, reliable or not: queues, requester and responder under the state machine of a queue pair
// (IBTA vol. 1, 10.2.4, 10.3.1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/timer_table.hpp"
#include "lib/roce/pace/flow.hpp"
#include "lib/roce/qp/capacity.hpp"
#include "lib/roce/qp/qp_events.hpp"
#include "lib/roce/rc/requester.hpp"
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

// What a queue pair uses and others may share; all outlive it.
struct QpContext {
    MemoryTable& memory;
    CompletionQueue& send_completions;
    CompletionQueue& receive_completions;
    RcCounters& counters;
    ReceiveQueue* shared_receives = nullptr;  // nullptr: its own
    FlushHook flush{};
    const StallWatch* stalls = nullptr;  // of the worker's turns
    HeldPackets* held = nullptr;         // nullptr: packets that come early are dropped
    bool equal_writes = false;           // reliable WRITEs leave as messages of one packet, all of one length
    double link_bytes_per_s = 0;         // what congestion control begins at; 0: there is none
};

// Protocol only: no I/O, no clock, no chance, no allocation after construction; driven by one thread. Payloads go
// straight between packets and registered memory. The port judges ICRC, destination QPN and the peer's address.
class QueuePair {
public:
    // `pd` exists (asserted); the queue pair holds it. Of service Xrc it is an initiator, which only sends, or, given a
    // `target`, which outlives it, only receives: whose queues and rights count its requests say, so that `pd` is none
    // and nothing comes into its completion queues.
    QueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const QpContext& context, const XrcTarget& target = {});
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;
    ~QueuePair();

    // Goes to `to` and takes those of `values` that `which` names; unless Ok, nothing changes. To RESET: nothing of
    // it is left, completions neither. To ERR: everything posted completes as flushed, in order, and no answer leaves
    // any more but the NAK of a request that was refused. An unreliable one
    // whose send request fails goes to SQE: send requests are flushed until it is brought back to RTS, it still
    // receives. Completions of an XRC target are its receive queues' and stay.
    [[nodiscard]] ModifyVerdict modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept;

    [[nodiscard]] PostVerdict post_send(const SendRequest& request) noexcept;
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept;

    // A packet to this queue pair. Its payload is not looked at after the call.
    void on_packet(const wire::Packet& packet, Instant now) noexcept;
    // The same, and the packet may be kept: then the answer is true, and `offer`, of which it is a view, stays as it is
    // until the held packets give it back.
    [[nodiscard]] bool on_packet(const wire::Packet& packet, const PacketOffer& offer, Instant now) noexcept;
    // A packet that on_packet() takes was marked "congestion experienced": its sender is told by a congestion
    // notification, once in 50 us at most. Nobody is told of acknowledgements, which nobody paces.
    void on_marked(const wire::Packet& packet, Instant now) noexcept;
    // Runs what is due. Spurious calls are harmless.
    void on_timeout(Instant now) noexcept;

    // Fills `out` from its front; returns how many packets, to be sent in this order. Fewer than asked: no more until
    // the next input. In ERR a NAK still comes that says why, behind the answers before it. A connection whose peer
    // notified congestion keeps to its flow's rate, acknowledgements excepted: it may then have more at
    // next_deadline().
    [[nodiscard]] std::size_t poll_transmit(std::span<OutPacket> out, Instant now) noexcept;
    // The same for one packet of a request, or of an answer; false: there is none.
    [[nodiscard]] bool poll_request(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_response(OutPacket& out) noexcept;
    // All that the peer is to be told is that its requests have come, and no rate is to be kept to.
    [[nodiscard]] bool owes_only_acknowledgement() const noexcept {
        return !paced_ && !owes_notification_ && responder_.owes_only_acknowledgement();
    }
    // What a peer waits for and is short: notifications, acknowledgements, NAKs, all but data that was read. The next
    // one, whatever the rate; false: there is none.
    [[nodiscard]] bool owes_short_answer() const noexcept {
        return owes_notification_ || responder_.has_short_response();
    }
    [[nodiscard]] bool poll_short_answer(OutPacket& out) noexcept;
    // When on_timeout() is due; changes by each input and by poll_transmit().
    [[nodiscard]] Instant next_deadline() const noexcept;
    // Each event once.
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return events_.poll(); }
    // Told of each; nullptr: nobody is. Outlives this.
    void set_event_sink(EventSink* sink) noexcept { events_.set_sink(sink); }

    [[nodiscard]] Qpn qpn() const noexcept { return qpn_; }
    [[nodiscard]] wire::Service service() const noexcept { return service_; }
    [[nodiscard]] QpKind kind() const noexcept { return {service_, is_target_}; }
    [[nodiscard]] QpState state() const noexcept { return state_; }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return attributes_; }
    // The same with the PSNs that are next: of our requests, and of the peer's.
    [[nodiscard]] QpAttributes query() const noexcept;
    [[nodiscard]] const QpCapacity& capacity() const noexcept { return capacity_; }
    [[nodiscard]] const Requester& requester() const noexcept { return requester_; }
    [[nodiscard]] const Responder& responder() const noexcept { return responder_; }
    // nullopt: no congestion was ever notified.
    [[nodiscard]] const std::optional<Flow>& flow() const noexcept { return flow_; }
    [[nodiscard]] bool paced() const noexcept { return paced_; }
    // Asserts what holds between any two calls. For tests.
    void check_invariants() const noexcept;

private:
    enum class Timer : std::uint8_t {
        Rate,  // what waits for the flow's rate
        Held,  // requests that came early are given up
        Count,
    };

    // By the state, and by what an XRC pair lacks.
    struct Abilities {
        bool send = false;
        bool receive = false;
        bool flush = false;  // what is posted to send
    };

    void enter(QpState state) noexcept;
    [[nodiscard]] bool sends() const noexcept { return may_.send; }
    [[nodiscard]] bool receives() const noexcept { return may_.receive; }
    [[nodiscard]] bool is_connected() const noexcept { return sends() || receives(); }
    [[nodiscard]] bool flushes() const noexcept { return may_.flush; }
    [[nodiscard]] PostVerdict judge_service(const SendRequest& request) const noexcept;
    [[nodiscard]] std::optional<RcCounter> judge_packet(const wire::Packet& packet) const noexcept;
    [[nodiscard]] bool poll_one(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_heedful(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_paced(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool waits_for_rate(Instant now) noexcept;
    void write_notification(OutPacket& out) noexcept;
    void on_notification(Instant now) noexcept;
    void end_pacing() noexcept;
    void on_result(RequesterResult result) noexcept;
    void on_result(ResponderResult result) noexcept;
    void enter_error(QpEvent why) noexcept;
    void enter_error() noexcept;
    void enter_reset() noexcept;
    void free_windows() noexcept;
    void flush_receive(std::uint64_t wr_id) noexcept;
    void notice_drained() noexcept;
    void watch_held(Instant now) noexcept;

    const Qpn qpn_;
    const Pd pd_;
    const wire::Service service_;
    const QpCapacity capacity_;
    QpContext context_;
    QpState state_ = QpState::Reset;
    Abilities may_{};
    bool paced_ = false;              // the flow's rate is below the link's
    bool owes_notification_ = false;  // to the peer, whose packet was marked
    TimerTable<Timer> timers_;
    Psn held_behind_{};  // what requests that came early wait for
    QpAttributes attributes_{};
    QpEvents events_;
    const bool is_target_;
    const bool takes_receives_;  // posted to itself
    bool drain_reported_ = false;
    bool established_ = false;    // some packet came in RTR
    bool response_first_ = true;  // answers and requests take turns
    SendQueue sends_;
    ReceiveQueue own_receives_;  // unused with a shared one
    Requester requester_;
    Responder responder_;
    DcqcnNotificationPoint notification_point_;
    std::optional<Flow> flow_;
};

}  // namespace cairn::roce::rc
