// Requester and completer: cuts send requests into packets, keeps them until they are answered, sends them again when
// they are not, and completes them in order (IBTA vol. 1, 9.7.3, 9.7.5, 9.7.6).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lib/base/time.hpp"
#include "lib/base/timer_table.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/round_trip.hpp"
#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/qp/send_queue.hpp"
#include "lib/roce/rc/counters.hpp"
#include "lib/roce/rc/judge_response.hpp"
#include "lib/roce/rc/out_packet.hpp"
#include "lib/roce/rc/resend_plan.hpp"

namespace cairn::roce::rc {

// What the queue pair must do: anything but Ok stops its send queue. The failed request is complete, those behind it
// are not.
enum class RequesterResult : std::uint8_t { Ok, Failed, CqOverrun };

// What a requester uses and others may share; all outlive it.
struct RequesterContext {
    MemoryTable& memory;
    CompletionQueue& completions;
    RcCounters& counters;
    const StallWatch* stalls = nullptr;  // whose turns these are; nullptr: there are no pauses
    bool equal_writes = false;           // a WRITE leaves as messages of one packet, all of one length
};

// One queue pair's. No I/O, no clock, no allocation. Go-back-N: what was lost is sent again with all behind it; a READ
// goes on with the first response that is missing (9.7.3). To a selective peer only what is missing is. An unreliable
// one keeps nothing: a request is complete when its last packet is handed out (9.8.1).
class Requester {
public:
    // `window_packets` of SENDs and WRITEs may be on their way, in [2, 2^20] (asserted).
    Requester(Qpn qpn, SendQueue& queue, const RequesterContext& context, std::uint32_t window_packets,
              wire::Service service = wire::Service::Rc) noexcept;

    // From RTS on: the next packet has attributes.send_psn. `attributes` outlive the requester.
    void start(const QpAttributes& attributes, Pd pd) noexcept;

    // The next request packet; false: none may be sent now. Changes by posting and by all inputs. `drain`: begin no
    // further request (SQD). A request whose SGEs are not allowed sets `result`.
    [[nodiscard]] bool poll_request(OutPacket& out, Instant now, bool drain, RequesterResult& result) noexcept;

    // An acknowledgement or response that is for this queue pair.
    [[nodiscard]] RequesterResult on_answer(const wire::Packet& packet, Instant now) noexcept;
    // Acts on deadlines that are due; spurious calls are harmless.
    [[nodiscard]] RequesterResult on_timeout(Instant now) noexcept;
    // Changes by every input and by poll_request().
    [[nodiscard]] Instant next_deadline() const noexcept;

    // While a flow is paced: ask for an acknowledgement with every so many packets at least, in [1, what is usual].
    void set_ack_interval(std::uint32_t packets) noexcept {
        ack_interval_ = std::clamp(packets, 1U, window_packets_ / 2);
    }
    // What is sent next is the oldest that has no answer, for the second time.
    [[nodiscard]] bool resends_oldest() const noexcept {
        return sent_ != unacknowledged_ && cursor_psn() == unacknowledged_;
    }
    // It left now, after a pause of our own: nobody could have answered it meanwhile.
    void forgive_pause(Instant now) noexcept;

    // Completes everything left as flushed, in order. False: a completion was lost.
    [[nodiscard]] bool flush() noexcept;

    // Nothing begun is unfinished.
    [[nodiscard]] bool drained() const noexcept { return queue_.empty() || !queue_.at(queue_.head()).started; }
    // Windows may be bound through this queue pair.
    [[nodiscard]] bool bound_windows() const noexcept { return bound_windows_; }
    [[nodiscard]] const RoundTrip& round_trip() const noexcept { return round_trip_; }
    [[nodiscard]] Psn next_psn() const noexcept { return sent_; }
    [[nodiscard]] Psn unacknowledged_psn() const noexcept { return unacknowledged_; }
    void check_invariants() const noexcept;

private:
    // Silence is noticed at the earlier of the first two. The configured time alone costs retries: a peer that is slow
    // for once is asked again sooner than configured, but not given up sooner.
    enum class Timer : std::uint8_t {
        Silence,       // as long as configured
        EarlySilence,  // from measured round trips
        NotReady,      // the peer asked to be left alone
        Count,
    };
    struct Timed {
        Psn psn{};
        Instant sent_at{};
    };

    // Sending.
    [[nodiscard]] bool may_send(Instant now, bool drain) const noexcept;
    [[nodiscard]] bool may_start(const SendWqe& wqe) const noexcept;
    void start_wqe(SendWqe& wqe) noexcept;
    // False: a local request waits, or failed.
    [[nodiscard]] bool run_local(bool drain, RequesterResult& result) noexcept;
    [[nodiscard]] bool execute_local(const SendWqe& wqe) noexcept;
    [[nodiscard]] bool find_payload(SendWqe& wqe, std::uint32_t offset, OutPacket& out) noexcept;
    void write(OutPacket& out, const SendWqe& wqe, std::uint32_t offset) noexcept;
    // False: a completion was lost.
    [[nodiscard]] bool move_on(const SendWqe& wqe, Instant now) noexcept;
    [[nodiscard]] bool forget_sent(bool whole) noexcept;
    [[nodiscard]] Psn cursor_psn() const noexcept;
    [[nodiscard]] std::uint32_t packets_of(const SendWqe& wqe) const noexcept;

    // Answers.
    [[nodiscard]] RequesterResult on_acknowledge(const wire::Packet& packet, Instant now) noexcept;
    [[nodiscard]] RequesterResult on_nak(wire::NakCode code, Psn psn, Instant now) noexcept;
    [[nodiscard]] RequesterResult on_rnr(wire::RnrTimer timer, Psn psn, Instant now) noexcept;
    [[nodiscard]] RequesterResult on_data(const wire::Packet& packet, Instant now) noexcept;
    [[nodiscard]] RequesterResult take_data(const wire::Packet& packet, SendWqe& wqe) noexcept;
    // All up to `psn` was executed; stops at a READ or atomic, which needs its own answer. False: an overrun.
    [[nodiscard]] bool acknowledge(Psn psn, Instant now) noexcept;
    // The peer has `newest` and misses something before it.
    [[nodiscard]] RequesterResult recover(RcCounter reason, Psn newest, Instant now) noexcept;
    [[nodiscard]] RequesterResult on_map(const wire::Packet& packet, Instant now) noexcept;
    void patch(Psn newest, Instant now) noexcept;
    void skip_spared() noexcept;
    void step() noexcept;
    [[nodiscard]] RequesterResult retry(Instant now) noexcept;
    void go_back() noexcept;
    void on_progress(Instant now) noexcept;
    void arm(Instant now) noexcept;
    void arm_early(Instant now) noexcept;
    void disarm() noexcept;
    void on_early_timeout(Instant now) noexcept;
    void measure(Instant now) noexcept;
    [[nodiscard]] bool defers() noexcept;
    [[nodiscard]] bool paused_since(Instant then) const noexcept { return stalls_ != nullptr && stalls_->spoils(then); }
    [[nodiscard]] bool complete_one(CompletionStatus status) noexcept;
    [[nodiscard]] bool complete_head(CompletionStatus status) noexcept;
    [[nodiscard]] RequesterResult fail(CompletionStatus status) noexcept;

    const Qpn qpn_;
    MemoryTable& memory_;
    SendQueue& queue_;
    CompletionQueue& completions_;
    RcCounters& counters_;
    const StallWatch* const stalls_;
    const std::uint32_t window_packets_;
    const wire::Service service_;
    const bool reliable_;
    const bool equal_writes_;
    const QpAttributes* attributes_ = nullptr;
    Pd pd_{};

    Psn unacknowledged_{};             // the oldest PSN without an answer
    Psn sent_{};                       // one behind the newest ever sent, READs' responses included
    std::uint32_t cursor_ = 0;         // position of the request to send from next
    std::uint32_t cursor_packet_ = 0;  // and which of its packets
    std::uint32_t front_ = 0;          // where the cursor was when it sent something for the first time
    std::uint32_t front_packet_ = 0;
    ResendPlan plan_;
    std::uint32_t reads_out_ = 0;      // READs and atomics started and not complete
    std::uint32_t read_psns_out_ = 0;  // PSNs of theirs without an answer: not counted against the window
    std::uint32_t since_ack_request_ = 0;
    std::uint32_t ack_interval_;  // packets
    std::uint8_t retries_left_ = 0;
    std::uint8_t rnr_retries_left_ = 0;
    bool bound_windows_ = false;  // since start()
    bool recovered_ = false;      // went back for what was lost, since the last progress or timeout
    TimerTable<Timer> timers_;
    Instant armed_at_{};           // Silence and EarlySilence
    bool deferred_ = false;        // a pause of our own put off the timeout that is armed
    bool sample_ignored_ = false;  // the last one, for a pause of our own
    RoundTrip round_trip_;
    std::optional<Timed> timed_;  // what the next sample of the round trip is taken from
    std::uint32_t silences_ = 0;  // early ones since the last progress
};

}  // namespace cairn::roce::rc
