// A connection, reliable or not: requester and responder under the states of a queue pair (IBTA vol. 1, 10.2.4,
// 10.3.1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/timer_table.hpp"
#include "lib/roce/pace/flow.hpp"
#include "lib/roce/qp/qp_core.hpp"
#include "lib/roce/rc/first_request.hpp"
#include "lib/roce/rc/requester.hpp"
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

// The objects that a queue pair uses and may share with others. All of them outlive the queue pair.
struct QpContext {
    MemoryTable& memory;
    CompletionQueue& send_completions;
    CompletionQueue& receive_completions;
    RcCounters& counters;
    ReceiveQueue* shared_receives = nullptr;  // nullptr: the queue pair has its own
    FlushHook flush{};
    const StallWatch* stalls = nullptr;  // watches the worker's turns; nullptr: there are no pauses
    HeldPackets* held = nullptr;         // nullptr: early packets are dropped
    bool equal_writes = false;           // reliable WRITEs leave as messages of one packet, all of one length
    EventSink* writes = nullptr;         // notified of the peer's WRITEs without immediate data; nullptr: no sink
    double link_bytes_per_s = 0;         // the rate that congestion control begins at; 0: no control
};

// Protocol only: no I/O, no clock, no random numbers, no allocation after construction; driven by one thread. Payloads
// go straight between packets and registered memory. The engine has judged ICRC, destination QPN and the peer's
// address.
class QueuePair {
public:
    // Makes a queue pair. It holds `pd`, which exists (asserted). With service Xrc it is an initiator, which only
    // sends, unless a `target` is given, which outlives it. An XRC target only receives. Its requests name queues and
    // rights, `pd` is none, and nothing comes into its own completion queues.
    QueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const QpContext& context, const XrcTarget& target = {});
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;
    ~QueuePair();

    // Goes to the state `to` and takes the attributes in `which` from `values`. With a refusal nothing changes. RESET
    // forgets everything, completions too; an XRC target's completions belong to its receive queues and stay. In ERR
    // all requests complete as flushed, in order. The only answer that still leaves is the NAK of a request that was
    // refused. An unreliable queue pair goes to SQE by itself when a send request fails. Send requests are then flushed
    // until it is brought back to RTS, and it still receives.
    [[nodiscard]] std::optional<ModifyRefusal> modify(QpState to, AttributeSet which,
                                                      const QpAttributes& values) noexcept;

    [[nodiscard]] PostVerdict post_send(const SendRequest& request) noexcept;
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept;

    // Takes a packet to this queue pair. Its payload is not looked at after the call.
    void on_packet(const wire::Packet& packet, Instant now) noexcept;
    // As above, for a packet in a buffer that may be kept. Returns true if it is kept. The buffer of `offer` then stays
    // unchanged until the held packets give it back.
    [[nodiscard]] bool on_packet(const wire::Packet& packet, const PacketOffer& offer, Instant now) noexcept;
    // Notes that a packet was marked "congestion experienced"; on_packet() takes it as well. A congestion notification
    // goes to its sender, at most once in 50 us. Marks on acknowledgements are only counted, since they are not paced.
    void on_marked(const wire::Packet& packet, Instant now) noexcept;
    // Runs the work that is due. Spurious calls are harmless.
    void on_timeout(Instant now) noexcept;

    // Fills `out` from its front. Returns the number of packets, which are to be sent in this order. Fewer than asked:
    // there are no more until the next input. In ERR the NAK with the reason still comes, after the answers before it.
    // A connection whose peer notified congestion keeps to its flow's rate, except for acknowledgements. It may have
    // more at next_deadline().
    [[nodiscard]] std::size_t poll_transmit(std::span<OutPacket> out, Instant now) noexcept;
    // Returns false if poll_transmit() makes no packet until the next input.
    [[nodiscard]] bool may_transmit() const noexcept {
        return responder_.has_response() || owes_notification_ || has_unsent_requests();
    }
    // Returns false if poll_request() makes no packet until the next input. Without requests it does not look at the
    // requester, which may lie in no cache if there are many queue pairs.
    [[nodiscard]] bool has_unsent_requests() const noexcept { return !sends_.empty() && requester_.has_unsent(); }
    // Makes one packet of a request, or of an answer. Returns false if there is none.
    [[nodiscard]] bool poll_request(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_response(OutPacket& out) noexcept;
    // Returns true if the peer is owed one acknowledgement and no other answer, and the connection is not paced.
    [[nodiscard]] bool owes_only_acknowledgement() const noexcept {
        return !paced_ && !owes_notification_ && responder_.owes_only_acknowledgement();
    }
    // Returns true if the next answer is short: a notification, an acknowledgement or a NAK, without data that was
    // read. Peers wait for such answers.
    [[nodiscard]] bool owes_short_answer() const noexcept {
        return owes_notification_ || responder_.has_short_response();
    }
    // Makes the next short answer, which the rate does not delay. Returns false if there is none.
    [[nodiscard]] bool poll_short_answer(OutPacket& out) noexcept;
    // Returns when on_timeout() is due. Each input and poll_transmit() change it.
    [[nodiscard]] Instant next_deadline() const noexcept;
    // Returns each event once.
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return core_.poll_event(); }
    // Notifies `sink` of each event; nullptr: no sink. It outlives the queue pair.
    void set_event_sink(EventSink* sink) noexcept { core_.set_event_sink(sink); }
    // Notifies `sink` once, in any state, of the first request that is taken after the change to RTR. On a reliable
    // connection only a peer that knows the first PSN gets that far. nullptr: no sink. RESET forgets the sink, which
    // lives until then or until another is set.
    void set_first_request_sink(EventSink* sink) noexcept { first_request_.set_sink(sink); }

    [[nodiscard]] Qpn qpn() const noexcept { return core_.qpn(); }
    [[nodiscard]] wire::Service service() const noexcept { return core_.service(); }
    [[nodiscard]] QpKind kind() const noexcept { return core_.kind(); }
    [[nodiscard]] QpState state() const noexcept { return core_.state(); }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return core_.attributes(); }
    // Returns the attributes with the PSNs of our next request and of the peer's.
    [[nodiscard]] QpAttributes query() const noexcept;
    [[nodiscard]] const Requester& requester() const noexcept { return requester_; }
    [[nodiscard]] const Responder& responder() const noexcept { return responder_; }
    // Returns nullopt if no congestion was notified since the last reset.
    [[nodiscard]] const std::optional<Flow>& flow() const noexcept { return flow_; }
    [[nodiscard]] bool paced() const noexcept { return paced_; }
    // Asserts the invariants between any two calls. For tests.
    void check_invariants() const noexcept;

private:
    enum class Timer : std::uint8_t {
        Rate,  // packets wait for the flow's rate
        Held,  // held early requests are given up then
        Count,
    };

    [[nodiscard]] bool sends() const noexcept { return core_.may().send; }
    [[nodiscard]] bool receives() const noexcept { return core_.may().receive; }
    [[nodiscard]] bool is_connected() const noexcept { return sends() || receives(); }
    [[nodiscard]] std::optional<RcCounter> judge_packet(const wire::Packet& packet) const noexcept;
    [[nodiscard]] bool poll_one(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_heedful(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool poll_paced(OutPacket& out, Instant now) noexcept;
    [[nodiscard]] bool waits_for_rate(Instant now) noexcept;
    void on_notification(Instant now) noexcept;
    void end_pacing() noexcept;
    void on_result(std::optional<RequesterStop> stop) noexcept;
    void on_result(std::optional<ResponderStop> stop) noexcept;
    void enter_error(QpEvent why) noexcept;
    void enter_error() noexcept;
    void enter_reset() noexcept;
    void free_windows() noexcept;
    void notice_drained() noexcept;
    void watch_held(Instant now) noexcept;

    QpCore core_;
    const QpCapacity capacity_;
    RcCounters& counters_;
    const double link_bytes_per_s_;   // 0: no congestion control
    bool paced_ = false;              // the flow's rate is below the link's
    bool owes_notification_ = false;  // a packet of the peer was marked
    bool response_first_ = true;      // answers and requests take turns
    FirstRequest first_request_;
    TimerTable<Timer> timers_;
    Psn held_behind_{};  // the PSN that early requests wait for
    SendQueue sends_;
    Requester requester_;
    Responder responder_;
    DcqcnNotificationPoint notification_point_;
    std::optional<Flow> flow_;
};

// Returns the present verdict of post_send().
[[nodiscard]] PostVerdict judge_send(const QueuePair& qp, const SendRequest& request) noexcept;

}  // namespace cairn::roce::rc
