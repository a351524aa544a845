// A slice, and what is to be done about it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rpc/scalerpc/block.hpp"
#include "rpc/scalerpc/groups.hpp"

namespace cairn::scalerpc {

// The slice that goes on.
struct Slice {
    std::uint8_t pool = 0;
    std::uint32_t epoch = 1;
    Duration length{};
    Duration usual{};  // from the first request on
    Instant began{};
    Instant last_request{};
    std::uint32_t requests = 0;
    std::uint64_t slot = 0;               // of the common clock, if there is one
    std::vector<Groups::Share> shares{};  // of the clients that have left it

    // mutants: scalerpc-slice-on-request
    void on_request(Instant now) noexcept {
        last_request = now;
        length = std::min(length, now - began + usual);
    }
};

// No slice has the epoch of staged blocks.
// mutants: scalerpc-next-epoch
[[nodiscard]] constexpr std::uint32_t next_epoch(std::uint32_t epoch) noexcept {
    return epoch + 1 != kStaged ? epoch + 1 : epoch + 2;
}

// The slice that is prepared, if one is.
struct NextSlice {
    bool warming = false;
    std::vector<SessionId> served{};
    Duration length{};
    Duration usual{};
    Instant began{};         // to be prepared
    std::uint64_t slot = 0;  // of the common clock, if there is one
    Instant ends{};          // likewise
};

// The next step of a slice. Close: answers tell their clients that the slice is over.
enum class SliceStep : std::uint8_t { Go, Warm, Close, Switch };
struct SliceView {
    Duration elapsed{};     // of the slice
    Duration length{};      // that it is to have
    Duration quiet{};       // since the last request
    Duration drain{};       // in which each client is likely to ask once more
    bool others = false;    // there is another group
    bool warming = false;   // the next group's requests are being read
    bool warm = false;      // all of them were
    bool deserted = false;  // nobody is served any more
    Duration warmed_for{};  // since they began to be read
    Duration patience{};    // in which slow clients are likely to be heard
};

constexpr std::int64_t kQuietParts = 2;       // a slice that is quiet for half of its length ends
constexpr Duration kLead = microseconds(30);  // of the slice's end, when the next group is read; half a slice at most

// Clients that need longer than a slice would come too late for ever. So slices wait for them.
class Patience {
public:
    static constexpr std::uint8_t kMostDoublings = 16;
    static constexpr Duration kMost = milliseconds(20);  // others wait as long
    static constexpr std::int64_t kMostSlices = 10;  // for which a switch waits for slow clients: others wait as long

    // A client was heard so long after it had been asked.
    void on_heard(Duration after) noexcept { slowest_ = std::max(slowest_, after); }
    // A slice has ended. `used`: a client asked in it.
    // mutants: scalerpc-patience-on-slice
    void on_slice(bool used) noexcept {
        slowest_ = slowest_ * 7 / 8;
        if (!used && doublings_ != kMostDoublings) {
            ++doublings_;
        } else if (used && doublings_ != 0) {
            --doublings_;
        }
    }
    // How long a slice waits for its first request. Each slice in a row without a request doubles that, up to `most`:
    // both ends may share a CPU.
    // mutants: scalerpc-patience-length
    [[nodiscard]] Duration length(Duration usual, Duration most) const noexcept {
        return std::max(usual, std::min(Duration{usual.ns << doublings_}, most));
    }
    // How long a switch waits for clients that are slower than others.
    // mutants: scalerpc-patience-for-slow
    [[nodiscard]] Duration for_slow(Duration usual, Duration most) const noexcept {
        return std::min({slowest_ * 2, usual * kMostSlices, most});
    }

private:
    Duration slowest_{};          // time after which a client was heard, of the slowest; decays
    std::uint8_t doublings_ = 0;  // slices without a request, less the slices with one
};

// How long before the end of a slice its successor is read.
[[nodiscard]] inline Duration lead_of(const SliceView& view) noexcept {
    return std::max(view.drain, std::min(kLead, view.length / kQuietParts));
}

// When a slice is to be looked at again, counted from its beginning, if nothing comes before. A worker that sleeps
// wakes at that time.
// mutants: scalerpc-next-look
[[nodiscard]] inline Duration next_look(const SliceView& view) noexcept {
    const Duration next = view.elapsed + view.length / (2 * kQuietParts);
    const Duration due = view.warming ? view.length : view.length - lead_of(view);
    if (due > view.elapsed) {
        return std::min(due, next);
    }
    return view.length > view.elapsed ? std::min(view.length, next) : next;
}

// A slice that is quiet ends early. One whose successor is not ready goes on for as long again at most, or for as long
// as slow clients need: a client that is always read too late would never be served.
// mutants: scalerpc-judge-slice
[[nodiscard]] inline SliceStep judge_slice(const SliceView& view) noexcept {
    if (!view.others) {
        return SliceStep::Go;
    }
    const Duration part = view.length / kQuietParts;
    const bool over = view.elapsed >= view.length || (view.quiet >= part && view.elapsed >= part);
    if (!view.warming) {
        return over || view.deserted || view.elapsed >= view.length - lead_of(view) ? SliceStep::Warm : SliceStep::Go;
    }
    if ((over || view.deserted) && (view.warm || view.warmed_for >= std::max(view.length, view.patience))) {
        return SliceStep::Switch;
    }
    return over || view.elapsed >= view.length - view.drain ? SliceStep::Close : SliceStep::Go;
}

}  // namespace cairn::scalerpc
