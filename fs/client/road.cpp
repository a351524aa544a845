#include "fs/client/road.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "fs/client/coarse_time.hpp"

namespace cairn::fs {

namespace {

constexpr Duration kSleepMost = milliseconds(100);  // a dying daemon wakes no client
constexpr Duration kSleepAmongLanes = milliseconds(1);

void nap() noexcept {
    const timespec span{0, 2'000'000};
    ::nanosleep(&span, nullptr);
}

}  // namespace

Road::Road(Connection& connection, MeetingWatch& watch, Duration timeout)
    : connection_(connection), watch_(watch), timeout_(timeout), view_(connection.view()) {
    by_shard_.resize(view_->table().shards());
}

Road::~Road() {
    while (!is_idle()) {
        LaneEnds ends;
        ends.failed.take_all(detoured_);
        for (const auto& lane : lanes_) {
            lane->take_queue(ends.failed);
            lane->replace(std::nullopt, ends);
        }
        polls_ = true;
        finish(ends, EIO);
    }
}

bool Road::is_idle() const noexcept {
    return detoured_.is_empty() && std::ranges::all_of(lanes_, [](const auto& lane) { return lane->is_idle(); });
}

void Road::submit(Ask& ask) noexcept {
    ask.deadline = coarse_now() + timeout_;
    ask.detours = 0;
    route(ask);
}

void Road::route(Ask& ask) noexcept {
    ask.shard = ask.target.is_slot ? view_->owner(ask.target.number) : ask.target.number;
    lane_to(ask.shard).submit(ask, *view_);
}

Lane& Road::lane_to(ShardNumber shard) noexcept {
    if (shard >= by_shard_.size()) {
        by_shard_.resize(shard + 1U);
    }
    if (by_shard_[shard] == nullptr) {
        const ShardNumber gateway = view_->gateway(shard);
        auto at = std::ranges::find_if(lanes_, [gateway](const auto& lane) { return lane->shard() == gateway; });
        if (at == lanes_.end()) {
            lanes_.push_back(std::make_unique<Lane>(gateway, connection_.add_channel(gateway)));
            at = std::prev(lanes_.end());
            LaneEnds none;
            (*at)->replace(connection_.take((*at)->place()), none);
        }
        by_shard_[shard] = at->get();
    }
    return *by_shard_[shard];
}

std::uint32_t Road::poll() noexcept {
    if (polls_) {
        return 0;
    }
    polls_ = true;
    LaneEnds ends;
    std::uint32_t answered = 0;
    for (std::size_t i = 0; i != lanes_.size(); ++i) {  // a completion may add one
        answered += lanes_[i]->poll(*view_, ends);
    }
    detoured_.take_all(ends.detoured);
    polls_ = false;
    empty_polls_ = answered == 0 ? empty_polls_ + 1 : 0;
    if (empty_polls_ == kPollsToALook) {
        empty_polls_ = 0;
        look_around();
    }
    return answered;
}

void Road::wait() noexcept {
    if (polls_ || poll() != 0) {
        return;
    }
    Lane* asked = nullptr;
    std::size_t count = 0;
    for (const auto& lane : lanes_) {
        if (lane->is_asked()) {
            asked = lane.get();
            ++count;
        }
    }
    if (asked == nullptr) {
        nap();
    } else {
        const bool is_sole = count == 1 && detoured_.is_empty();
        asked->wait(is_sole ? kSleepMost : kSleepAmongLanes);
    }
    look_around();
    (void)poll();
}

void Road::look_around() noexcept {
    const Instant now = coarse_now();
    if (now - looked_ < kLookEvery && detoured_.is_empty()) {
        return;
    }
    looked_ = now;
    polls_ = true;
    meet(now);
    LaneEnds due;
    detoured_.take_due(now, due.failed);
    for (const auto& lane : lanes_) {
        lane->expire(now, due);
    }
    finish(due, has_daemon_ ? ETIMEDOUT : EIO);
    polls_ = false;
}

void Road::meet(Instant now) noexcept {
    if (connection_.meeting() != view_->meeting()) {
        adopt_meeting();
        return;
    }
    has_daemon_ = !connection_.has_hung_up();
    if ((has_daemon_ && detoured_.is_empty()) || now - met_ < kMeetEvery) {
        return;
    }
    met_ = now;
    if (connection_.meet_again(view_->meeting())) {
        adopt_meeting();
        watch_.met_again();
    }
}

// Asks that wait for slots or after a redirect may have another way by the new table.
void Road::adopt_meeting() noexcept {
    has_daemon_ = true;
    view_ = connection_.view();
    by_shard_.assign(view_->table().shards(), nullptr);
    LaneEnds ends;
    AskQueue waiting = std::exchange(detoured_, {});
    for (const auto& lane : lanes_) {
        lane->take_queue(waiting);
        if (lane->meeting() != view_->meeting()) {
            lane->replace(connection_.take(lane->place()), ends);
        }
    }
    while (!waiting.is_empty()) {
        Ask& ask = waiting.pop();
        if (ask.detours == kMostDetours) {
            ends.failed.push(ask);
        } else {
            route(ask);
        }
    }
    finish(ends, EIO);
}

void Road::finish(LaneEnds& ends, int error) noexcept {
    while (!ends.failed.is_empty()) {
        ends.failed.pop().complete(error, {}, {});
    }
}

}  // namespace cairn::fs
