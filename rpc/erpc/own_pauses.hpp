// When our own worker was away: what did not come meanwhile was not lost, and nobody was silent.
#pragma once

#include "lib/base/time.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

class OwnPauses {
public:
    explicit OwnPauses(Duration peer_timeout) noexcept : peer_timeout_(peer_timeout) {}

    // Each scan. After a pause of our own the answers lie in the ring, unread: nothing is lost by waiting once more.
    // mutants: erpc-own-pauses-on-scan
    void on_scan(Instant now) noexcept {
        const Duration away = now - last_scan_;
        // Once for each scan, so that a worker whose every turn is long notices losses, too.
        if (away >= kScanInterval + kOwnStall && losses_from_ <= last_scan_) {
            losses_from_ = now + kRtoMin;
        }
        if (away >= peer_timeout_ / 2) {
            listening_from_ = now;
        }
        last_scan_ = now;
    }
    // Whether what is overdue counts as lost.
    [[nodiscard]] bool losses_count(Instant now) const noexcept { return now >= losses_from_; }
    // Peers are silent since then at the earliest.
    [[nodiscard]] Instant listening_from() const noexcept { return listening_from_; }
    [[nodiscard]] Instant last_scan() const noexcept { return last_scan_; }

private:
    Duration peer_timeout_;
    Instant last_scan_{};
    Instant losses_from_{};
    Instant listening_from_{};
};

}  // namespace cairn::erpc
