// Requester: cuts send requests into packets, keeps them until they are answered, and sends them again if they are not
// (IBTA vol. 1, 9.7.3, 9.7.5, 9.7.6).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.hpp"
#include "lib/roce/rc/ack_requests.hpp"
#include "lib/roce/rc/answer_timers.hpp"
#include "lib/roce/rc/completer.hpp"
#include "lib/roce/rc/out_packet.hpp"
#include "lib/roce/rc/resend_plan.hpp"
#include "lib/roce/rc/send_cursor.hpp"

namespace cairn::roce::rc {

// The objects that a requester uses and may share with others. All of them outlive the requester.
struct RequesterContext {
    MemoryTable& memory;
    CompletionQueue& completions;
    RcCounters& counters;
    const StallWatch* stalls = nullptr;  // watches the worker's turns; nullptr: there are no pauses
    bool equal_writes = false;           // a WRITE leaves as messages of one packet, all of one length
};

// Part of a queue pair. No I/O, no clock, no allocation. Goes back N: a lost packet is sent again with all later ones;
// a READ goes on with the first response that is missing (9.7.3). A selective peer gets only the packets that it
// misses. An unreliable service keeps nothing: a request is complete when its last packet is handed out (9.8.1).
class Requester {
public:
    // Makes a requester. `window_packets` of SENDs and WRITEs may be outstanding, in [2, 2^20] (asserted).
    Requester(Qpn qpn, SendQueue& queue, const RequesterContext& context, std::uint32_t window_packets,
              wire::Service service = wire::Service::Rc) noexcept;

    // Forgets everything; the next packet has attributes.send_psn. `attributes` outlive the requester.
    void start(const QpAttributes& attributes, Pd pd) noexcept;

    // Makes the next request packet. Returns false if none may be sent now; posting and every input change that. With
    // `drain` no further request is begun (SQD, or sends wait). A request whose SGEs are not allowed sets `stop`.
    [[nodiscard]] bool poll_request(OutPacket& out, Instant now, bool drain,
                                    std::optional<RequesterStop>& stop) noexcept;

    // Takes an acknowledgement or response for this queue pair.
    [[nodiscard]] std::optional<RequesterStop> on_answer(const wire::Packet& packet, Instant now) noexcept;
    // Acts on deadlines that are due. Spurious calls are harmless.
    [[nodiscard]] std::optional<RequesterStop> on_timeout(Instant now) noexcept;
    // Returns when on_timeout() is due. Every input and poll_request() change it.
    [[nodiscard]] Instant next_deadline() const noexcept { return timers_.next(); }

    // Returns false if poll_request() does nothing until the next post, answer or timeout. Also returns true while a
    // pass of the plan is to be ended.
    [[nodiscard]] bool has_unsent() const noexcept { return !cursor_.is_at_end(side()) || plan_.passing(); }

    // Asks the peer to acknowledge every `packets` packets at least, within [1, half a window]. A paced flow asks more
    // often.
    void set_ack_interval(std::uint32_t packets) noexcept { ack_requests_.set_interval(packets); }
    // Returns true if the next packet is the oldest one without an answer, and is sent again.
    [[nodiscard]] bool resends_oldest() const noexcept { return side().awaits_answer() && is_at_oldest_psn(); }
    // Takes a pause of our own off the peer's time: a packet left only now, and the peer could not answer before.
    void forgive_pause(Instant now) noexcept { timers_.forgive_pause(now); }

    // Completes everything left as flushed, in order. Returns false if a completion was lost.
    [[nodiscard]] bool flush() noexcept;

    [[nodiscard]] const SendQueue& queue() const noexcept { return side().queue; }

    // Returns true if windows may be bound through this queue pair.
    [[nodiscard]] bool bound_windows() const noexcept { return bound_windows_; }
    [[nodiscard]] const RoundTrip& round_trip() const noexcept { return timers_.round_trip(); }
    [[nodiscard]] Psn next_psn() const noexcept { return side().sent; }
    [[nodiscard]] Psn unacknowledged_psn() const noexcept { return side().unacknowledged; }
    void check_invariants() const noexcept;

private:
    // The number of times that the peer is asked again. Going back for lost packets counts once until there is progress
    // or a timeout. Otherwise late NAKs and acknowledgements with the same meaning would each send a window again and
    // use up the retries.
    struct Retries {
        std::uint8_t left = 0;
        std::uint8_t rnr_left = 0;
        bool recovered = false;
    };

    // The packet that the cursor is at.
    struct Leaving {
        Psn psn;
        Psn behind;  // the PSN after it and, for a READ, after its answer
        bool last;   // of its request
        bool whole;  // its request has an answer of its own, and no other packet
    };

    [[nodiscard]] SendSide& side() noexcept { return completer_.side(); }
    [[nodiscard]] const SendSide& side() const noexcept { return completer_.side(); }
    [[nodiscard]] bool is_at_oldest_psn() const noexcept { return cursor_.psn(side()) == side().unacknowledged; }

    // The following functions send packets.
    [[nodiscard]] bool may_send(Instant now, bool drain) const noexcept;
    [[nodiscard]] bool may_start(const SendWqe& wqe) const noexcept;
    // Runs local requests that are at the cursor. Returns false if one waits, or failed.
    [[nodiscard]] bool run_local(bool drain, std::optional<RequesterStop>& stop) noexcept;
    [[nodiscard]] bool execute_local(const SendWqe& wqe) noexcept;
    void write(OutPacket& out, const SendWqe& wqe, const WorkPackets& operations, const Leaving& packet,
               std::uint32_t offset) noexcept;
    // Moves on after a packet. Returns false if a completion was lost.
    [[nodiscard]] bool move_on(const Leaving& packet, Instant now) noexcept;

    // The following functions act on answers and silence.
    [[nodiscard]] std::optional<RequesterStop> act(const AnswerEffect& effect, const wire::Packet& packet,
                                                   Instant now) noexcept;
    [[nodiscard]] std::optional<RequesterStop> acknowledge_executed(Instant now) noexcept;
    [[nodiscard]] std::optional<RequesterStop> hold_back(wire::RnrTimer timer, Instant now) noexcept;
    // Recovers a loss: the peer has `newest` and misses a packet before it.
    [[nodiscard]] std::optional<RequesterStop> recover(RcCounter reason, Psn newest, Instant now) noexcept;
    void patch(Psn newest, Instant now) noexcept;
    [[nodiscard]] std::optional<RequesterStop> retry(Instant now) noexcept;
    void go_back() noexcept;
    void on_progress(Instant now) noexcept;
    void arm(Instant now) noexcept;

    Completer completer_;
    SendCursor cursor_;
    ResendPlan plan_;
    AnswerTimers timers_;
    const std::uint32_t window_packets_;
    AckRequests ack_requests_;
    const wire::Service service_;
    const bool reliable_;
    const bool equal_writes_;
    bool bound_windows_ = false;  // since start()
    Retries retries_{};
};

}  // namespace cairn::roce::rc
