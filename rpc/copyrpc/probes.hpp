// Looks for peers that have fallen silent.
#pragma once

#include "rpc/copyrpc/links.hpp"

namespace cairn::copyrpc {

// A reliable connection is silent while its peer owes nothing but an answer. A WRITE of no bytes makes the peer's
// transport speak. Looks are counted, not time: whoever pauses itself looks once. The references outlive the object.
class Probes {
public:
    Probes(Duration peer_timeout, SessionTable& sessions, Links& links) noexcept
        : interval_{peer_timeout.ns / kLooksUntilLost}, sessions_(sessions), links_(links) {}

    // Looks at all sessions when that is due. Those that stayed silent are lost.
    void look(Instant now) noexcept;
    [[nodiscard]] Instant next_look() const noexcept { return next_look_; }

private:
    static constexpr std::uint8_t kLooksUntilLost = 8;

    void look_at(Session& session, Instant now) noexcept;

    Duration interval_;
    SessionTable& sessions_;
    Links& links_;
    Instant next_look_{};
};

}  // namespace cairn::copyrpc
