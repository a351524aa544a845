// Pauses of our own worker. A packet that was not received during a pause was not lost, and its sender was not silent.
#pragma once

#include "lib/base/time.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

class OwnPauses {
public:
    explicit OwnPauses(Duration peer_timeout) noexcept : peer_timeout_(peer_timeout) {}

    // Called each scan. After a pause of our own, the answers still lie in the port's ring. So losses do not count for
    // a while.
    void on_scan(Instant now) noexcept {
        const Duration away = now - last_scan_;
        // The second condition lets losses count in between, so that a worker whose turns are all long notices them.
        if (away >= kScanInterval + kOwnStall && losses_from_ <= last_scan_) {
            losses_from_ = now + kRtoMin;
        }
        if (away >= peer_timeout_ / 2) {
            listening_from_ = now;
        }
        last_scan_ = now;
    }
    // True if an overdue packet counts as lost.
    [[nodiscard]] bool losses_count(Instant now) const noexcept { return now >= losses_from_; }
    // Returns when we began to listen. A peer's silence does not count before that.
    [[nodiscard]] Instant listening_from() const noexcept { return listening_from_; }
    [[nodiscard]] Instant last_scan() const noexcept { return last_scan_; }

private:
    Duration peer_timeout_;
    Instant last_scan_{};
    Instant losses_from_{};
    Instant listening_from_{};
};

}  // namespace cairn::erpc
