// Looks for peers that have fallen silent.
#pragma once

#include <utility>

#include "rpc/linked/linked_session.hpp"

namespace cairn::rpc {

// A reliable connection is silent while its peer owes nothing but an answer. A WRITE of no bytes makes the peer's
// transport speak. Looks are counted, not time: if this end paused, it makes one look for the whole pause.
class Probes {
public:
    // Finds a silent peer within the timeout. One look forgets what was heard before, one probes, and the others count.
    explicit Probes(Duration peer_timeout) noexcept : interval_{peer_timeout.ns / kLooksInTimeout} {}

    // True if all sessions must be looked at.
    [[nodiscard]] bool is_due(Instant now) noexcept {
        if (now < next_look_) {
            return false;
        }
        next_look_ = now + interval_;
        return true;
    }
    // Looks at a session. Returns true if it was silent for too long. The probe writes to `rkey` and `address`. A send
    // queue without room for the probe counts as silence, too: its peer acknowledges nothing.
    [[nodiscard]] static bool is_lost(LinkedSession& session, Rkey rkey, std::uint64_t address) noexcept {
        if (!session.is_open()) {
            return false;
        }
        if (std::exchange(session.heard, false)) {
            session.silent_looks = 0;
            return false;
        }
        if (!session.probed) {
            verbs::SendRequest probe;
            probe.opcode = verbs::WorkOpcode::RdmaWrite;
            probe.wr_id = kProbe;
            probe.remote_address = address;
            probe.rkey = rkey;
            session.probed = session.qp->post_send(probe) == verbs::PostVerdict::Posted;
            if (session.probed) {
                return false;
            }
        }
        return ++session.silent_looks >= kLooksUntilLost;
    }
    // Notes that the probe of a session has completed.
    static void on_answer(LinkedSession& session) noexcept {
        session.probed = false;
        session.heard = true;
    }
    [[nodiscard]] Instant next_look() const noexcept { return next_look_; }

    static constexpr std::uint64_t kProbe = ~std::uint64_t{0};  // the number of the probe's work request
    static constexpr std::uint8_t kLooksInTimeout = 10;

private:
    static constexpr std::uint8_t kLooksUntilLost = kLooksInTimeout - 2;

    Duration interval_;
    Instant next_look_{};
};

}  // namespace cairn::rpc
