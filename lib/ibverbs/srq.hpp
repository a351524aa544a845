// Shared receive queues, including those of XRC.
#pragma once

#include "lib/ibverbs/cq.hpp"
#include "lib/ibverbs/xrc.hpp"

namespace cairn::ibverbs {

// A shared receive queue. The adapter's lock guards all but the public part.
struct Srq : ibv_srq, OfContext, AsyncSource, roce::EventSink {
    Srq(std::uint32_t slots, std::uint32_t max_sges);

    // Notes that fewer requests are left than the limit.
    void on_event() noexcept override;

    [[nodiscard]] static Srq& of(ibv_srq* srq) noexcept { return *static_cast<Srq*>(srq); }

    roce::ReceiveQueue queue;
    std::uint32_t max_sges;
    std::uint32_t users = 0;  // queue pairs
    Srqn number{};            // of XRC
    Xrcd* domain = nullptr;   // of XRC
    Cq* completions = nullptr;
};

}  // namespace cairn::ibverbs
