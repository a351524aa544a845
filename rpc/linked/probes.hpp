// Looks for peers that have fallen silent.
#pragma once

#include <utility>

#include "rpc/linked/linked_session.hpp"

namespace cairn::rpc {

// A reliable connection is silent while its peer owes nothing but an answer. A WRITE of no bytes makes the peer's
// transport speak. Looks are counted, not time: an end that paused itself makes one look for the whole pause.
class Probes {
public:
    // A silent peer is lost within the timeout: one look forgets what was heard before, one probes, the others count.
    // mutants: linked-probes-construct
    explicit Probes(Duration peer_timeout) noexcept : interval_{peer_timeout.ns / kLooksInTimeout} {}

    // True if all sessions are to be looked at.
    [[nodiscard]] bool is_due(Instant now) noexcept {
        if (now < next_look_) {
            return false;
        }
        next_look_ = now + interval_;
        return true;
    }
    // Looks at a session. Returns true if it stayed silent for too long. The WRITE goes to the key and address.
    // A queue that has no room for it is as silent: its peer acknowledges nothing.
    // mutants: linked-probes-is-lost
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
    // The probe of a session completed.
    static void on_answer(LinkedSession& session) noexcept {
        session.probed = false;
        session.heard = true;
    }
    [[nodiscard]] Instant next_look() const noexcept { return next_look_; }

    static constexpr std::uint64_t kProbe = ~std::uint64_t{0};  // the work request's number
    static constexpr std::uint8_t kLooksInTimeout = 10;

private:
    static constexpr std::uint8_t kLooksUntilLost = kLooksInTimeout - 2;

    Duration interval_;
    Instant next_look_{};
};

}  // namespace cairn::rpc
