// A slice, and the judgement of its next step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rpc/scalerpc/block.hpp"
#include "rpc/scalerpc/groups.hpp"

namespace cairn::scalerpc {

// The present slice.
struct Slice {
    std::uint8_t pool = 0;
    std::uint64_t number = 1;
    Duration length{};
    Duration usual{};  // length from the first request on
    Instant began{};
    Instant last_request{};
    std::uint32_t requests = 0;
    std::uint64_t slot = 0;               // of the common clock, if there is one
    std::vector<Groups::Share> shares{};  // of the clients that have left it

    void on_request(Instant now) noexcept {
        last_request = now;
        length = std::min(length, now - began + usual);
    }
};

// Returns the epoch of a session's next slice. Epochs are consecutive, but skip that of staged blocks.
[[nodiscard]] constexpr std::uint32_t next_epoch(std::uint32_t epoch) noexcept {
    return epoch + 1 != kStaged ? epoch + 1 : epoch + 2;
}

// The next slice, if one is being prepared.
struct NextSlice {
    bool warming = false;
    std::vector<SessionId> served{};
    Duration length{};
    Duration usual{};
    Instant began{};  // when its preparation began
    Instant ready = Instant::never();
    std::uint64_t slot = 0;  // of the common clock, if there is one
    Instant ends{};          // by the common clock, if there is one
};

// The next step of a slice. Close: answers notify their clients that the slice is over.
enum class SliceStep : std::uint8_t { Go, Warm, Close, Switch };
struct SliceView {
    Duration elapsed{};     // of the slice
    Duration length{};      // wanted length of the slice
    Duration quiet{};       // time since the last request
    Duration drain{};       // time in which each client is likely to ask once more
    bool warming = false;   // the next group's requests are being read
    bool warm = false;      // all of them were read
    bool deserted = false;  // no client is served any more
    Duration warmed_for{};  // time since READs of the next group began
    Duration ready_for{};   // time since is_ready()
    bool clocked = false;   // a common clock says when the slice ends
    Duration patience{};    // time in which most clients are likely to be heard
};

constexpr std::int64_t kQuietParts = 2;       // a slice that is quiet for half of its length ends
constexpr Duration kLead = microseconds(30);  // the next group is read this long before a slice's end, or half a slice

// If most clients need longer than a slice, slices wait for them. Slices do not wait for clients that need much longer
// than most.
class Patience {
public:
    static constexpr std::uint8_t kMostDoublings = 16;
    static constexpr Duration kMost = milliseconds(20);  // other clients wait that long
    static constexpr std::int64_t kMostSlices = 10;  // most slices that a switch waits for clients, while others wait
    static constexpr std::int64_t kSlowParts = 4;    // a slow client needs longer than this many usual ones

    // Notes that a client was heard `after` it had been asked. A single very slow client hardly counts: the mean grows
    // as if it had needed twice the mean.
    void on_heard(Duration after) noexcept {
        const Duration counted = usual_.ns == 0 ? after : std::min(after, usual_ * 2);
        usual_ = Duration{usual_.ns + (counted.ns - usual_.ns) / (usual_.ns == 0 ? 1 : kHeardParts)};
    }
    // True if it takes much longer to hear this client than others, and longer than a slice.
    [[nodiscard]] bool is_slow(Duration way, Duration slice) const noexcept {
        return way > std::max(slice, usual_ * kSlowParts);
    }
    // Notes that a slice has ended. `used`: a client asked in it.
    void on_slice(bool used) noexcept {
        if (!used && doublings_ != kMostDoublings) {
            ++doublings_;
        } else if (used && doublings_ != 0) {
            --doublings_;
        }
    }
    // Returns how long a slice waits for its first request. Each successive slice without a request doubles that, up to
    // `most`: both ends may share a CPU.
    [[nodiscard]] Duration length(Duration usual, Duration most) const noexcept {
        return std::max(usual, std::min(Duration{usual.ns << doublings_}, most));
    }
    // Returns how long a switch waits for its clients.
    [[nodiscard]] Duration for_most(Duration slice, Duration most) const noexcept {
        return std::min({usual_ * 2, slice * kMostSlices, most});
    }

private:
    static constexpr std::int64_t kHeardParts = 16;

    Duration usual_{};            // mean of the last times after which clients were heard
    std::uint8_t doublings_ = 0;  // slices without a request, minus slices with one
};

// Returns how long before the end of a slice the next group is read.
[[nodiscard]] inline Duration lead_of(const SliceView& view) noexcept {
    return std::max(view.drain, std::min(kLead, view.length / kQuietParts));
}

// Returns when to look at a slice again, counted from its beginning, if nothing comes before. A sleeping worker wakes
// at that time.
[[nodiscard]] inline Duration next_look(const SliceView& view) noexcept {
    const Duration next = view.elapsed + view.length / (2 * kQuietParts);
    const Duration due = view.warming ? view.length : view.length - lead_of(view);
    if (due > view.elapsed) {
        return std::min(due, next);
    }
    return view.length > view.elapsed ? std::min(view.length, next) : next;
}

// True if the next slice may begin: the requests that it waits for were read, or it has waited long enough.
[[nodiscard]] inline bool is_ready(const SliceView& view) noexcept {
    return view.warming && (view.warm || view.warmed_for >= std::max(view.length, view.patience));
}

// Returns the next step of a slice while there is another group. A quiet slice ends early. If the next slice is not
// ready, the present one goes on, and serves its clients. Then answers announce its end, if the clients are likely to
// ask once more and no common clock ends it.
[[nodiscard]] inline SliceStep judge_slice(const SliceView& view) noexcept {
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
