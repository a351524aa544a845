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
    std::uint64_t number = 1;
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

// A session's slices have its epochs, one behind the other. None has the epoch of staged blocks.
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
    Instant began{};  // to be prepared
    Instant ready = Instant::never();
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
    Duration ready_for{};   // since is_ready()
    bool clocked = false;   // a common clock says when it ends
    Duration patience{};    // in which most clients are likely to be heard
};

constexpr std::int64_t kQuietParts = 2;       // a slice that is quiet for half of its length ends
constexpr Duration kLead = microseconds(30);  // of the slice's end, when the next group is read; half a slice at most

// Where most clients need longer than a slice, slices wait for them. Nobody waits for those that need much longer than
// most do.
class Patience {
public:
    static constexpr std::uint8_t kMostDoublings = 16;
    static constexpr Duration kMost = milliseconds(20);  // others wait as long
    static constexpr std::int64_t kMostSlices = 10;  // for which a switch waits for its clients: others wait as long
    static constexpr std::int64_t kSlowParts = 4;    // a slow client needs longer than so many usual ones

    // A client was heard so long after it had been asked. A single one that is very slow hardly counts: the mean grows
    // as if it had needed twice the mean.
    // mutants: scalerpc-patience-on-heard
    void on_heard(Duration after) noexcept {
        const Duration counted = usual_.ns == 0 ? after : std::min(after, usual_ * 2);
        usual_ = Duration{usual_.ns + (counted.ns - usual_.ns) / (usual_.ns == 0 ? 1 : kHeardParts)};
    }
    // True if it takes much longer to hear a client than others, and longer than a slice.
    // mutants: scalerpc-patience-is-slow
    [[nodiscard]] bool is_slow(Duration way, Duration slice) const noexcept {
        return way > std::max(slice, usual_ * kSlowParts);
    }
    // A slice has ended. `used`: a client asked in it.
    // mutants: scalerpc-patience-on-slice
    void on_slice(bool used) noexcept {
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
    // How long a switch waits for its clients.
    // mutants: scalerpc-patience-for-most
    [[nodiscard]] Duration for_most(Duration slice, Duration most) const noexcept {
        return std::min({usual_ * 2, slice * kMostSlices, most});
    }

private:
    static constexpr std::int64_t kHeardParts = 16;

    Duration usual_{};            // time after which clients are heard; the mean of the last ones
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

// The next slice may begin: the requests that it waits for were read, or it has waited for long enough.
// mutants: scalerpc-is-ready
[[nodiscard]] inline bool is_ready(const SliceView& view) noexcept {
    return view.warming && (view.warm || view.warmed_for >= std::max(view.length, view.patience));
}

// A slice that is quiet ends early. One whose successor is not ready goes on, and serves its clients meanwhile. Then
// they are told by their answers that it is over, if they are likely to ask once more and no common clock ends it.
// mutants: scalerpc-judge-slice
[[nodiscard]] inline SliceStep judge_slice(const SliceView& view) noexcept {
    if (!view.others) {
        return SliceStep::Go;
    }
    const Duration part = view.length / kQuietParts;
    const bool quiet = view.deserted || (view.quiet >= part && view.elapsed >= part);
    const bool over = view.elapsed >= view.length;
    if (!view.warming) {
        return over || quiet || view.elapsed >= view.length - lead_of(view) ? SliceStep::Warm : SliceStep::Go;
    }
    if (!is_ready(view)) {
        return SliceStep::Go;
    }
    if (quiet || (over && (view.clocked || view.ready_for >= view.drain))) {
        return SliceStep::Switch;
    }
    return view.elapsed >= view.length - view.drain ? SliceStep::Close : SliceStep::Go;
}

}  // namespace cairn::scalerpc
