#include "rpc/scalerpc/batch_calls.hpp"

namespace cairn::scalerpc {

namespace {

CallStatus status_if_not_posted(PostVerdict verdict) noexcept {
    switch (verdict) {
        case PostVerdict::Full:
            return CallStatus::TableFull;
        case PostVerdict::TooLong:
            return CallStatus::RequestTooLong;
        case PostVerdict::NoSuchSession:
        case PostVerdict::Posted:
            break;
    }
    return CallStatus::Disconnected;
}

}  // namespace

BatchCalls::~BatchCalls() {
    for (Place& place : places_) {
        if (place.id != 0) {
            place.calls = nullptr;
            (void)endpoint_.cancel(place.id, worker_.now());
        }
    }
}

BatchCalls::Place& BatchCalls::take_place() {
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(places_.size()));
        places_.emplace_back().number = free_.back();
    }
    Place& place = places_[free_.back()];
    free_.pop_back();
    place.calls = this;
    return place;
}

PostVerdict BatchCalls::post(Place& place, SessionId session, const Call& call, Instant now) {
    CAIRN_ASSERT(call.completion == nullptr && call.context == nullptr);
    place.tag = call.tag;
    place.response = call.response;
    Call posted = call;
    posted.context = &place;
    posted.ends_with_endpoint = true;
    posted.completion = [](void* context, const rpc::CallResult& result) {
        auto& self = *static_cast<Place*>(context);
        if (self.calls != nullptr) {
            self.calls->on_completed(self, result);
        }
    };
    const Posted outcome = endpoint_.post(session, posted, now);
    if (outcome.verdict == PostVerdict::Posted) {
        place.id = outcome.id;
        ++under_way_;
    } else {
        free_.push_back(place.number);
    }
    return outcome.verdict;
}

std::size_t BatchCalls::async_call(std::span<const BatchCall> batch, Instant now) {
    std::size_t posted = 0;
    while (posted != batch.size() &&
           post(take_place(), batch[posted].session, batch[posted].call, now) == PostVerdict::Posted) {
        ++posted;
    }
    return posted;
}

void BatchCalls::on_completed(Place& place, const rpc::CallResult& result) {
    const Completed completed{place.tag, result.status, result.latency, place.response};
    place.id = 0;
    --under_way_;
    free_.push_back(place.number);
    if (place.awaited) {
        place.awaited = false;
        awaited_ = completed;
    } else {
        completed_.push_back(completed);
    }
}

std::optional<Completed> BatchCalls::poll_completion() {
    if (completed_.empty()) {
        return std::nullopt;
    }
    const Completed first = completed_.front();
    completed_.pop_front();
    return first;
}

Completed BatchCalls::sync_call(SessionId session, const Call& call, const std::function<Instant()>& clock) {
    Place& place = take_place();
    place.awaited = true;
    awaited_.reset();
    const PostVerdict verdict = post(place, session, call, clock());
    if (verdict != PostVerdict::Posted) {
        place.awaited = false;
        return {call.tag, status_if_not_posted(verdict), {}, call.response};
    }
    while (!awaited_) {
        (void)worker_.turn(clock());
    }
    return *awaited_;
}

}  // namespace cairn::scalerpc
