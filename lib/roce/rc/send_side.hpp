// The common state of requester and completer: the send queue, and how far it is sent and answered.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/send_queue.hpp"
#include "lib/roce/rc/counters.hpp"

namespace cairn::roce::rc {

// The requester moves `sent` on, the completer `unacknowledged`. The PSNs between them are outstanding.
struct SendSide {
    const Qpn qpn;
    MemoryTable& memory;
    SendQueue& queue;
    RcCounters& counters;
    const QpAttributes* attributes = nullptr;
    Pd pd{};

    Psn unacknowledged{};             // the oldest PSN without an answer
    Psn sent{};                       // one after the newest PSN ever sent, PSNs of READs' responses included
    std::uint32_t reads_out = 0;      // requests with an answer of their own that are started and not complete
    std::uint32_t read_psns_out = 0;  // their PSNs without an answer, which do not count against the window

    [[nodiscard]] bool awaits_answer() const noexcept { return sent != unacknowledged; }
    [[nodiscard]] std::uint32_t outstanding_psns() const noexcept {
        return static_cast<std::uint32_t>(sent.since(unacknowledged));
    }
    // Returns true if the request ends a region. It waits for all that was sent before, which may have to be read once
    // more. The end of a window does not wait, since only the peer uses that.
    [[nodiscard]] bool ends_region(const SendWqe& wqe) const noexcept {
        return wqe.opcode == WorkOpcode::LocalInvalidate && !memory.find_window(wqe.invalidate);
    }
    // Returns the number of PSNs that the request takes: packets of its own, or of a READ's answer.
    [[nodiscard]] std::uint32_t psns_of(const SendWqe& wqe) const noexcept {
        const std::uint32_t mtu = attributes->path_mtu_bytes;
        const bool several = wqe.bytes > mtu && work_traits(wqe.opcode).is_segmented();
        return several ? (wqe.bytes + mtu - 1) / mtu : 1;
    }
    // Gives the request the next PSNs.
    void begin(SendWqe& wqe) noexcept {
        const std::uint32_t psns = psns_of(wqe);
        wqe.first = sent;
        wqe.last = sent.plus(psns - 1);
        wqe.flags.started = true;
        if (has_own_answer(wqe.opcode)) {
            ++reads_out;
            read_psns_out += psns;
        }
    }
};

}  // namespace cairn::roce::rc
