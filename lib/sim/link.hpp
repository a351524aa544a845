// Link: one direction between two nodes. It decides the fate of each frame and keeps the frames under way. Their order
// is that of (arrival, serial) alone, so that one seed is one history.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/sim/fault_mix.hpp"
#include "lib/sim/frame.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
constexpr std::uint64_t kBitPicoseconds = 8'000'000'000'000;  // 8 bits in units of 1e-12 s

struct LinkCounters {
    std::uint64_t offered = 0;
    std::uint64_t tail_dropped = 0;  // the queue in front of the bottleneck was full
    std::uint64_t marked = 0;        // congestion experienced
    std::uint64_t partitioned = 0;   // lost to a partition
    std::uint64_t lost = 0;          // lost singly
    std::uint64_t burst_lost = 0;    // lost while the link was bad
    std::uint64_t bursts = 0;        // times that the link turned bad
    std::uint64_t duplicated = 0;
    std::uint64_t late_copies = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t delivered = 0;

    LinkCounters& operator+=(const LinkCounters& other) noexcept;
};

struct Flight {
    Instant arrival{};
    std::uint64_t serial = 0;
    Frame frame;

    [[nodiscard]] bool before(const Flight& other) const noexcept {
        return arrival != other.arrival ? arrival < other.arrival : serial < other.serial;
    }
};

// The fate of a frame, or of one copy of it.
enum class Fate : std::uint8_t {
    Delivered,
    Corrupted,
    Duplicated,  // the second copy
    Late,        // a copy that comes when it is not expected any more
    Lost,
    LostInBurst,
    Partitioned,
    TailDropped
};
[[nodiscard]] std::string_view text_of(Fate fate) noexcept;

class Link {
public:
    explicit Link(std::uint64_t seed) noexcept : random_(seed) {}

    void set_faults(const LinkFaults& faults) noexcept;
    // Sets the shape. Frames that already wait keep their departure.
    void set_shape(const LinkShape& shape) noexcept { shape_ = shape; }
    void set_partitioned(bool partitioned) noexcept { partitioned_ = partitioned; }

    using Witness = std::function<void(const Frame& frame, Fate fate, Instant arrival)>;

    // Sends a frame: it passes the bottleneck, then the faults. `next_serial` is the network's counter, one for all
    // links. `witness` gets the fate of each copy.
    void send(Frame frame, Instant now, std::uint64_t& next_serial, const Witness& witness = nullptr);

    [[nodiscard]] bool empty() const noexcept { return flights_.empty(); }
    // Returns the frame that arrives first. The link is not empty().
    [[nodiscard]] const Flight& front() const noexcept { return flights_.front(); }
    [[nodiscard]] Flight pop();

    [[nodiscard]] const LinkCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::size_t under_way() const noexcept { return flights_.size(); }
    [[nodiscard]] std::uint64_t queued_bytes(Instant now);

private:
    struct Waiting {
        std::int64_t departure_ps;
        std::size_t bytes;
    };
    [[nodiscard]] bool pass_bottleneck(Frame& frame, Instant now, Instant& departure);
    [[nodiscard]] Fate lose();
    void launch(Frame frame, Fate fate, Instant departure, std::uint64_t& next_serial, const Witness& witness);

    Random random_;
    LinkFaults faults_;
    LinkShape shape_;
    bool partitioned_ = false;
    bool bad_ = false;                // the burst state
    std::int64_t busy_until_ps_ = 0;  // picoseconds: a byte at 100 Gbit/s takes 80
    std::uint64_t queued_bytes_ = 0;
    std::deque<Waiting> queue_;
    std::vector<Flight> flights_;  // a heap
    LinkCounters counters_;
};

}  // namespace cairn::sim
