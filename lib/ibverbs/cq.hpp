// Completion queues.
#pragma once

#include "lib/ibverbs/async_events.hpp"
#include "lib/ibverbs/channel.hpp"
#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

// The adapter's lock guards all but the public part.
struct Cq : ibv_cq_ex, OfContext, AsyncSource, roce::EventSink {
    explicit Cq(std::uint32_t slots);

    // Notes that the queue fired, or overran.
    void on_event() noexcept override;
    // Asks for an event with the next completion, or the next solicited one.
    void arm(roce::CompletionQueue::Arm wish) noexcept;
    // Notes that the program has polled the queue empty. An event that was made when the queue was armed, and was not
    // taken, has no completion any more. The queue is armed as if that event had not been made: ibv_rc_pingpong -e -t
    // takes an event without a completion for an error.
    void on_drained() noexcept;
    void disarm() noexcept;

    [[nodiscard]] static Cq& of(ibv_cq* cq) noexcept { return *static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
    [[nodiscard]] ibv_cq* as_cq() noexcept { return ibv_cq_ex_to_cq(this); }

    roce::CompletionQueue queue;
    Pd* domain = nullptr;  // the parent domain that it was made with
    Cq* next_in_channel = nullptr;
    bool in_channel = false;
    bool is_armed = false;
    roce::CompletionQueue::Arm made_event = roce::CompletionQueue::Arm::Off;  // the wish that made one at once
    bool overrun_told = false;
    // The kind of the network header in front of a datagram. Adapters for RoCE report it as service level, and UCX goes
    // by it.
    enum NetworkType : std::uint8_t { kIpv6 = 1, kIpv4 = 2 };
    NetworkType network_type = kIpv4;
    std::uint32_t users = 0;         // queue pairs and shared receive queues
    std::uint32_t events_given = 0;  // by ibv_get_cq_event(); the program acknowledges them
    std::mutex polling;              // held from start_poll() to end_poll(): guards the next
    roce::Completion current{};
    Place<Cq> place{*this};
};

// Fills in the operations by which a program polls an extended completion queue.
void set_polling(ibv_cq_ex& cq) noexcept;

}  // namespace cairn::ibverbs
