// Queue pairs.
#pragma once

#include <array>
#include <vector>

#include "lib/ibverbs/posting.hpp"
#include "lib/ibverbs/srq.hpp"

namespace cairn::ibverbs {

// A queue pair of a connection or of datagrams. The adapter's lock guards all but the public part.
struct Qp : ibv_qp_ex, OfContext, AsyncSource, roce::EventSink {
    Qp();

    void set_context(ibv_context* context) noexcept;
    void on_event() noexcept override;
    // Stops the queue pair, since its context is closed: it sends and receives nothing any more. The program still has
    // to end it.
    void stop() noexcept;
    void tell(roce::QpEvent event) noexcept;
    // Makes this one stand for the target of `other`.
    void stand_for(const Qp& other) noexcept;
    [[nodiscard]] std::optional<roce::QpEvent> poll_event() noexcept;
    [[nodiscard]] roce::QpState current_state() const noexcept;
    [[nodiscard]] bool is_datagrams() const noexcept { return datagrams != nullptr; }

    [[nodiscard]] static Qp& of(ibv_qp* qp) noexcept { return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }

    roce::Engine::RcQp* connection = nullptr;
    roce::UdQueuePair* datagrams = nullptr;
    Xrcd* domain = nullptr;  // of an XRC target
    std::shared_ptr<SharedTarget> target;
    ibv_qp_cap cap{};
    bool signals_all = false;
    ibv_ah_attr way{};  // as the program gave it
    std::uint8_t port = 0;

    Place<Qp> place{*this};
    std::unique_ptr<Posting> posting;  // nullptr: the queue pair is not extended
};

// Makes the queue pair take part in the next turn, since something was posted. Needs the lock.
inline void wake(Qp& qp, roce::Engine& engine) noexcept {
    if (qp.is_datagrams()) {
        engine.wake(*qp.datagrams);
    } else {
        engine.wake(*qp.connection);
    }
}

// Returns how many requests its send queue takes. A slot is taken until the completion of its request, or of a later
// one, was polled (IBTA vol. 1, 10.8.3). So a program that posts until the queue is full does not overrun its
// completion queue. Needs the lock.
[[nodiscard]] inline std::uint32_t free_slots(const Qp& qp) noexcept {
    return qp.is_datagrams() ? qp.datagrams->sends().free_slots()
                             : qp.connection->pair.requester().queue().free_slots();
}

// Posts one request, which leaves with the next turn. Adds the length of its memory to `bytes`. Needs the lock. Returns
// an errno value.
[[nodiscard]] int post_one(Qp& qp, const ibv_send_wr& from, std::uint64_t& bytes) noexcept;
// Returns what post_one() would return now, if there is a slot.
[[nodiscard]] int judge_one(const Qp& qp, const ibv_send_wr& from) noexcept;

}  // namespace cairn::ibverbs
