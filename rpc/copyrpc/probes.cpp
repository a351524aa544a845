// Looks for peers that have fallen silent.
#include "rpc/copyrpc/probes.hpp"

#include <utility>

namespace cairn::copyrpc {

void Probes::look(Instant now) noexcept {
    if (now >= next_look_) {
        next_look_ = now + interval_;
        sessions_.for_each([this, now](Session& session) { look_at(session, now); });
    }
}

// mutants: copyrpc-probes-look-at
void Probes::look_at(Session& session, Instant now) noexcept {
    if (!session.is_open()) {
        return;
    }
    if (std::exchange(session.heard, false)) {
        session.silent_looks = 0;
        return;
    }
    if (session.probed && ++session.silent_looks >= kLooksUntilLost) {
        links_.on_lost(session, now);
        return;
    }
    verbs::SendRequest probe;
    probe.opcode = verbs::WorkOpcode::RdmaWrite;
    probe.remote_address = session.peer.address;
    probe.rkey = session.peer.rkey;
    session.probed = session.probed || session.qp->post_send(probe) == verbs::PostVerdict::Posted;
}

}  // namespace cairn::copyrpc
