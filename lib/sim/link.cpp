#include "lib/sim/link.hpp"

#include <algorithm>
#include <utility>

namespace cairn::sim {

namespace {

bool later(const Flight& a, const Flight& b) noexcept {
    return b.before(a);
}

}  // namespace

std::string_view text_of(Fate fate) noexcept {
    switch (fate) {
        case Fate::Delivered:
            return "delivered";
        case Fate::Corrupted:
            return "corrupted";
        case Fate::Duplicated:
            return "duplicated";
        case Fate::Late:
            return "late";
        case Fate::Lost:
            return "lost";
        case Fate::LostInBurst:
            return "lost in a burst";
        case Fate::Partitioned:
            return "lost to a partition";
        case Fate::TailDropped:
            return "lost to a full queue";
    }
    return "";
}

LinkCounters& LinkCounters::operator+=(const LinkCounters& other) noexcept {
    for (const auto field :
         {&LinkCounters::offered, &LinkCounters::tail_dropped, &LinkCounters::marked, &LinkCounters::partitioned,
          &LinkCounters::lost, &LinkCounters::burst_lost, &LinkCounters::bursts, &LinkCounters::duplicated,
          &LinkCounters::late_copies, &LinkCounters::corrupted, &LinkCounters::delivered}) {
        this->*field += other.*field;
    }
    return *this;
}

void Link::set_faults(const LinkFaults& faults) noexcept {
    faults_ = faults;
    bad_ = false;
}

std::uint64_t Link::queued_bytes(Instant now) {
    while (!queue_.empty() && queue_.front().departure_ps <= now.ns * kPicosecondsPerNanosecond) {
        queued_bytes_ -= queue_.front().bytes;
        queue_.pop_front();
    }
    return queued_bytes_;
}

// Passes the frame through the queue. Returns false if it is dropped at the tail.
bool Link::pass_bottleneck(Frame& frame, Instant now, Instant& departure) {
    departure = now;
    if (shape_.bits_per_second == 0) {
        return true;
    }
    const std::uint64_t waiting = queued_bytes(now);
    const std::size_t bytes = frame.bytes.size() + kWireOverheadBytes;
    if (shape_.queue_limit_bytes != 0 && waiting + bytes > shape_.queue_limit_bytes) {
        ++counters_.tail_dropped;
        return false;
    }
    if (shape_.ecn_threshold_bytes != 0 && waiting > shape_.ecn_threshold_bytes && frame.mark_congestion()) {
        ++counters_.marked;
    }
    const auto span = static_cast<std::int64_t>(bytes * kBitPicoseconds / shape_.bits_per_second);
    busy_until_ps_ = std::max(busy_until_ps_, now.ns * kPicosecondsPerNanosecond) + span;
    queue_.push_back({busy_until_ps_, bytes});
    queued_bytes_ += bytes;
    departure = Instant{(busy_until_ps_ + kPicosecondsPerNanosecond - 1) / kPicosecondsPerNanosecond};
    return true;
}

// Decides whether the frame is lost. Returns Delivered if it is not.
Fate Link::lose() {
    if (partitioned_) {
        ++counters_.partitioned;
        return Fate::Partitioned;
    }
    if (bad_) {
        bad_ = !random_.chance(faults_.burst_leave_per_million);
    } else if (random_.chance(faults_.burst_enter_per_million)) {
        bad_ = true;
        ++counters_.bursts;
    }
    if (bad_) {
        ++counters_.burst_lost;
        return Fate::LostInBurst;
    }
    if (random_.chance(faults_.loss_per_million)) {
        ++counters_.lost;
        return Fate::Lost;
    }
    return Fate::Delivered;
}

void Link::send(Frame frame, Instant now, std::uint64_t& next_serial, const Witness& witness) {
    ++counters_.offered;
    Instant departure;
    const Fate fate = pass_bottleneck(frame, now, departure) ? lose() : Fate::TailDropped;
    if (fate != Fate::Delivered) {
        if (witness) {
            witness(frame, fate, now);
        }
        return;
    }
    if (random_.chance(faults_.duplicate_per_million)) {
        ++counters_.duplicated;
        launch(frame, Fate::Duplicated, departure, next_serial, witness);
    }
    if (random_.chance(faults_.late_copy_per_million)) {
        ++counters_.late_copies;
        const Duration late = random_.between(Duration{}, faults_.late_copy_most);
        launch(frame, Fate::Late, departure + late, next_serial, witness);
    }
    launch(std::move(frame), Fate::Delivered, departure, next_serial, witness);
}

void Link::launch(Frame frame, Fate fate, Instant departure, std::uint64_t& next_serial, const Witness& witness) {
    if (random_.chance(faults_.corrupt_per_million)) {
        ++counters_.corrupted;
        fate = Fate::Corrupted;
        frame.flip_bit(random_.next());
    }
    const Duration late = faults_.jitter.ns == 0 ? Duration{} : random_.between(Duration{}, faults_.jitter);
    const Instant arrival = departure + shape_.delay + late;
    if (witness) {
        witness(frame, fate, arrival);
    }
    flights_.push_back({arrival, next_serial++, std::move(frame)});
    std::push_heap(flights_.begin(), flights_.end(), later);
}

Flight Link::pop() {
    std::pop_heap(flights_.begin(), flights_.end(), later);
    Flight flight = std::move(flights_.back());
    flights_.pop_back();
    ++counters_.delivered;
    return flight;
}

}  // namespace cairn::sim
