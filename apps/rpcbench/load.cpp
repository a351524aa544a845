#include "apps/rpcbench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "apps/common/pattern.hpp"

namespace cairn::rpcbench {

Load::Load(const Options& options, erpc::Endpoint& endpoint, rpc::MsgPool& pool, double share)
    : options_(options),
      endpoint_(endpoint),
      pool_(pool),
      rate_per_ns_(options.rate_per_s * share / 1e9),
      by_slots_(options.check || options.rate_per_s > 0) {}

Status Load::prepare() {
    const auto take = [this](rpc::MsgBuffer& buffer) {
        buffer = pool_.allocate(std::max(options_.request_bytes, 1U));
        buffer.bytes = buffer.valid() ? options_.request_bytes : 0;
        return buffer.valid();
    };
    slots_.resize(by_slots_ ? options_.window : 0);
    bool room = take(request_);
    std::memset(request_.data, 0x5a, request_.bytes);
    for (std::size_t i = 0; room && i < slots_.size(); ++i) {
        slots_[i].request = request_;
        room = !options_.check || take(slots_[i].request);
    }
    return room ? Status(Nothing{}) : Error{"no memory for the requests", "lower --window or --req"};
}

void Load::start(std::span<const SessionId> sessions, Instant measured_from, Instant now) {
    sessions_ = sessions;
    phase_ = Phase::Calling;
    started_ = now_ = now;
    measured_from_ = measured_from;
    if (rate_per_ns_ > 0) {
        next_due_ = now;
        for (std::uint32_t i = options_.window; i > 0; --i) {
            free_.push_back(i - 1);
        }
        return;
    }
    for (std::uint32_t i = 0; i < options_.window; ++i) {
        by_slots_ ? call_in(i, now) : call(static_cast<std::uint32_t>(i % sessions_.size()));
    }
}

void Load::stop(Instant now) {
    phase_ = Phase::Stopped;
    measured_to_ = now;
    measured_ = latency_ns_.count();
    if (rate_per_ns_ > 0) {
        const auto due = static_cast<std::uint64_t>(static_cast<double>((now - started_).ns) * rate_per_ns_);
        not_begun_ = due > begun_ ? due - begun_ : 0;
        next_due_ = Instant::never();
    }
}

// mutants: rpcbench-load-give-up
void Load::give_up() {
    phase_ = Phase::GivenUp;
    unfinished_ = endpoint_.calls_pending();
}

double Load::seconds() const noexcept {
    const Instant to = std::min(measured_to_, now_);
    return to > measured_from_ ? static_cast<double>((to - measured_from_).ns) / 1e9 : 0.0;
}

double Load::rate_mops() const noexcept {
    const std::uint64_t measured = measured_to_ == Instant::never() ? latency_ns_.count() : measured_;
    return seconds() > 0 ? static_cast<double>(measured) / seconds() / 1e6 : 0.0;
}

void Load::post(erpc::Call& call, std::uint32_t session) noexcept {
    call.context = this;
    if (options_.deadline_ms != 0) {
        call.deadline = now_ + milliseconds(options_.deadline_ms);
    }
    if (endpoint_.post(sessions_[session], call, now_).verdict != erpc::PostVerdict::Posted) [[unlikely]] {
        fail("a call could not be posted: its session ended");
    }
}

void Load::call(std::uint32_t session) noexcept {
    erpc::Call call;
    call.type = kEcho;
    call.request = request_.span();
    call.completion = on_completed;
    call.tag = session;
    post(call, session);
}

void Load::call_in(std::uint32_t slot_index, Instant due) noexcept {
    Slot& slot = slots_[slot_index];
    slot.due = due;
    erpc::Call call;
    call.type = options_.check ? kChecked : kEcho;
    if (options_.check) {
        app::fill_pattern(slot.request.span(), begun_);
        slot.answer = app::digest(slot.request.span());
    }
    ++begun_;
    call.request = slot.request.span();
    call.completion = on_slot_completed;
    call.tag = slot_index;
    post(call, next_session());
}

// A call that is due and finds no slot begins later. Its latency counts from when it was due.
bool Load::begin_due() noexcept {
    const std::uint64_t before = begun_;
    while (phase_ == Phase::Calling && next_due_ <= now_ && !free_.empty()) {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        call_in(slot, next_due_);
        next_due_ = started_ + Duration{static_cast<std::int64_t>(static_cast<double>(begun_) / rate_per_ns_)};
    }
    return begun_ != before;
}

std::uint32_t Load::next_session() noexcept {
    turn_ = turn_ + 1 < sessions_.size() ? turn_ + 1 : 0;
    return turn_;
}

// Returns true if the loop goes on with another call.
bool Load::take(const erpc::CallResult& result, Duration latency) noexcept {
    if (result.status == erpc::CallStatus::Ok) {
        if (result.response.size() != options_.response_bytes) [[unlikely]] {
            fail(fmt::format("the server answers with {} bytes, and --resp is {} here; give both ends the same --resp",
                             result.response.size(), options_.response_bytes));
            return false;
        }
        ++completed_;
        if (now_ >= measured_from_) {
            latency_ns_.record(static_cast<std::uint64_t>(latency.ns));
        }
    } else {
        failed_ += phase_ == Phase::GivenUp ? 0U : 1U;
        if (result.status == erpc::CallStatus::Disconnected || result.status == erpc::CallStatus::PeerLost) {
            return false;  // the session callback says why
        }
    }
    return phase_ == Phase::Calling;
}

void Load::on_completed(void* context, const erpc::CallResult& result) {
    auto& self = *static_cast<Load*>(context);
    if (self.take(result, result.latency)) {
        // With at most `window` sessions each call stays on its session. With more, calls take the sessions in turn.
        const bool in_turn = self.sessions_.size() > self.options_.window;
        self.call(in_turn ? self.next_session() : static_cast<std::uint32_t>(result.tag));
    }
}

// mutants: rpcbench-load-on-slot-completed
void Load::on_slot_completed(void* context, const erpc::CallResult& result) {
    auto& self = *static_cast<Load*>(context);
    const auto slot = static_cast<std::uint32_t>(result.tag);
    const bool answered = result.status == erpc::CallStatus::Ok;
    if (answered && self.options_.check) {
        ++self.checked_;
        if (!app::has_pattern(result.response, self.slots_[slot].answer)) {
            self.fail("an answer is not that of what was asked: the request or the answer was changed on its way");
            return;
        }
    }
    const bool open = self.rate_per_ns_ > 0;
    const bool goes_on = self.take(result, open ? self.now_ - self.slots_[slot].due : result.latency);
    if (open) {
        self.free_.push_back(slot);
    } else if (goes_on) {
        self.call_in(slot, self.now_);
    }
}

void Load::fail(std::string why) {
    if (failure_.empty()) {
        failure_ = std::move(why);
    }
}

}  // namespace cairn::rpcbench
