// The core of the queue pairs of all services. It has the state, the attributes, the asynchronous events, and the
// receive requests that are posted to the queue pair itself (IBTA vol. 1, 10.2.4, 10.3.1, 11.6.3).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/capacity.hpp"
#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/qp_events.hpp"
#include "lib/roce/qp/receive_queue.hpp"

namespace cairn::roce {

// Memory and queues that a queue pair uses and may share with others. All of them outlive it.
struct QpResources {
    MemoryTable& memory;
    CompletionQueue& send_completions;
    CompletionQueue& receive_completions;
    ReceiveQueue* shared_receives = nullptr;  // nullptr: the queue pair has its own
};

// A part of a queue pair, which drives it. The core judges changes of state and keeps what is common to all services.
// The queue pair carries out the effects of a change on packets and send requests. Allocates only when made.
class QpCore {
public:
    // Makes the core. The queue pair holds `pd`, which exists (asserted). An XRC target has no domain: `pd` is ignored.
    QpCore(Qpn qpn, Pd pd, QpKind kind, const QpCapacity& capacity, const QpResources& resources);
    QpCore(const QpCore&) = delete;
    QpCore& operator=(const QpCore&) = delete;
    ~QpCore();

    // Judges a change to the state `to`. Without a refusal it takes the attributes in `which`, and the owner enters the
    // state by one of the three functions below. With a refusal nothing changes.
    [[nodiscard]] std::optional<ModifyRefusal> accept(QpState to, AttributeSet which,
                                                      const QpAttributes& values) noexcept;
    void enter(QpState state) noexcept;
    // Enters RESET and forgets everything: attributes, events, receive requests, and completions that were not polled.
    void reset() noexcept;
    // Takes the last step into ERR, after the owner has flushed the work that it had begun: the receive requests
    // complete as flushed.
    void flush_receives() noexcept;

    // Posts a receive request. WrongState is also returned if receive requests come from a shared queue; WrongSide for
    // XRC, always.
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept;
    // Completes a receive request that no message filled. If the completion finds no room, it is lost, and the
    // completion queue is overrun. The queue's owner sees that.
    void complete_receive(std::uint64_t wr_id, CompletionStatus status) noexcept;
    // Returns the queue that messages take their receive requests from.
    [[nodiscard]] ReceiveQueue& receives() noexcept {
        return resources_.shared_receives == nullptr ? own_receives_ : *resources_.shared_receives;
    }

    void raise(QpEvent event) noexcept { events_.raise(event); }
    // Returns each event once.
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return events_.poll(); }
    // Notifies `sink` of each event; nullptr: no sink. It outlives the queue pair.
    void set_event_sink(EventSink* sink) noexcept { events_.set_sink(sink); }
    // Returns true if the state is SQD, and SendQueueDrained was not raised since it was entered.
    [[nodiscard]] bool awaits_drain() const noexcept { return state_ == QpState::Sqd && !drain_reported_; }
    void report_drained() noexcept;

    [[nodiscard]] Qpn qpn() const noexcept { return qpn_; }
    [[nodiscard]] Pd pd() const noexcept { return pd_; }
    [[nodiscard]] QpKind kind() const noexcept { return kind_; }
    [[nodiscard]] wire::Service service() const noexcept { return kind_.service; }
    [[nodiscard]] QpState state() const noexcept { return state_; }
    [[nodiscard]] Abilities may() const noexcept { return may_; }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return attributes_; }
    [[nodiscard]] const QpResources& resources() const noexcept { return resources_; }
    // Asserts the invariants between any two calls to the queue pair. For tests.
    void check_invariants() const noexcept;

private:
    const Qpn qpn_;
    const Pd pd_;
    const QpKind kind_;
    QpState state_ = QpState::Reset;
    Abilities may_{};
    bool drain_reported_ = false;
    QpAttributes attributes_{};
    QpEvents events_;
    const QpResources resources_;
    ReceiveQueue own_receives_;  // unused with a shared one, and of XRC
};

}  // namespace cairn::roce
