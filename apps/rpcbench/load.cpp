#include "apps/rpcbench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "apps/common/pattern.hpp"
#include "apps/rpcbench/ud_endpoint.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::rpcbench {

namespace {

std::uint32_t calls_at_most(const Options& options) {
    return options.clients.count > 0 ? options.clients.count * options.clients.batch : options.window;
}

}  // namespace

Load::Load(const Options& options, rpc::MsgPool& pool, double share)
    : options_(options),
      by_slots_(options.check || options.rate_per_s > 0 || options.clients.count > 0),
      pool_(pool),
      rate_per_ns_(options.rate_per_s * share / 1e9) {}

Status Load::prepare() {
    const auto take = [this](rpc::MsgBuffer& buffer) {
        buffer = pool_.allocate(std::max(options_.request_bytes, 1U));
        buffer.bytes = buffer.valid() ? options_.request_bytes : 0;
        return buffer.valid();
    };
    slots_.resize(by_slots_ ? calls_at_most(options_) : 0);
    bool room = take(request_);
    if (room) {
        std::memset(request_.data, 0x5a, request_.bytes);
    }
    for (std::size_t i = 0; room && i < slots_.size(); ++i) {
        slots_[i].request = request_;
        room = !options_.check || take(slots_[i].request);
    }
    return room ? Status(Nothing{}) : Error{"no memory for the requests", "lower --window or --req"};
}

void Load::start(std::span<const SessionId> sessions, Instant measured_from, Instant now) {
    sessions_ = sessions;
    phase_ = Phase::Calling;
    started_ = now;
    figures_.keep_time(now);
    figures_.begin(measured_from);
    begin();
}

void Load::stop(Instant now) {
    phase_ = Phase::Stopped;
    figures_.end(now, is_open_loop() ? not_begun(now) : 0);
    end();
}

void Load::give_up(std::uint64_t pending) {
    phase_ = Phase::GivenUp;
    figures_.add_unfinished(pending);
}

std::uint32_t Load::next_session() noexcept {
    turn_ = turn_ + 1 < sessions_.size() ? turn_ + 1 : 0;
    return turn_;
}

bool Load::take(const rpc::CallResult& result, Duration latency) noexcept {
    if (result.status == rpc::CallStatus::Ok) [[likely]] {
        if (result.response.size() != options_.response_bytes) [[unlikely]] {
            figures_.fail(
                fmt::format("the server answers with {} bytes, and --resp is {} here; give both ends the same --resp",
                            result.response.size(), options_.response_bytes));
            return false;
        }
        figures_.add_completed(latency);
    } else {
        if (phase_ != Phase::GivenUp) {
            figures_.add_failed();
        }
        if (result.status == rpc::CallStatus::Disconnected || result.status == rpc::CallStatus::PeerLost) {
            return false;  // the session callback says why
        }
    }
    return phase_ == Phase::Calling;
}

bool Load::is_sound(const rpc::CallResult& result) noexcept {
    if (result.status != rpc::CallStatus::Ok || !options_.check) {
        return true;
    }
    figures_.add_checked();
    if (app::has_pattern(result.response, slots_[result.tag].answer)) {
        return true;
    }
    figures_.fail("an answer is not that of what was asked: the request or the answer was changed on its way");
    return false;
}

rpc::Call Load::describe(std::uint32_t slot_index) noexcept {
    Slot& slot = slots_[slot_index];
    rpc::Call call;
    call.type = options_.check ? kChecked : kEcho;
    if (options_.check) {
        app::fill_pattern(slot.request.span(), begun_);
        slot.answer = app::digest(slot.request.span());
    }
    ++begun_;
    call.request = slot.request.span();
    call.tag = slot_index;
    if (options_.deadline_ms != 0) {
        call.deadline = figures_.now() + milliseconds(options_.deadline_ms);
    }
    return call;
}

bool Load::accepted(rpc::PostVerdict verdict) noexcept {
    if (verdict == rpc::PostVerdict::Posted) [[likely]] {
        return true;
    }
    figures_.fail(verdict == rpc::PostVerdict::TooLong
                      ? "a call could not be posted: it is too long; lower --req or --resp, or raise --ring"
                      : "a call could not be posted: its session ended");
    return false;
}

template <class Endpoint>
void LoadOf<Endpoint>::begin() {
    if (is_open_loop()) {
        next_due_ = figures_.now();
        for (std::uint32_t i = options_.window; i > 0; --i) {
            free_.push_back(i - 1);
        }
        return;
    }
    for (std::uint32_t i = 0; i < options_.window; ++i) {
        by_slots_ ? call_in(i, figures_.now()) : call(static_cast<std::uint32_t>(i % sessions_.size()));
    }
}

template <class Endpoint>
std::uint64_t LoadOf<Endpoint>::not_begun(Instant now) const noexcept {
    const auto due = static_cast<std::uint64_t>(static_cast<double>((now - started()).ns) * rate_per_ns());
    return due > begun_ ? due - begun_ : 0;
}

template <class Endpoint>
void LoadOf<Endpoint>::post(rpc::Call& call, std::uint32_t session) noexcept {
    call.context = this;
    (void)accepted(endpoint_.post(sessions_[session], call, figures_.now()).verdict);
}

template <class Endpoint>
void LoadOf<Endpoint>::call(std::uint32_t session) noexcept {
    rpc::Call call;
    call.type = kEcho;
    call.request = request_.span();
    call.completion = on_completed;
    call.tag = session;
    if (options_.deadline_ms != 0) {
        call.deadline = figures_.now() + milliseconds(options_.deadline_ms);
    }
    post(call, session);
}

template <class Endpoint>
void LoadOf<Endpoint>::call_in(std::uint32_t slot, Instant due) noexcept {
    rpc::Call call = describe(slot);
    slots_[slot].due = due;
    call.completion = on_slot_completed;
    post(call, next_session());
}

// Begins calls that are due. One that finds no slot begins later. Its latency counts from the time when it was due.
template <class Endpoint>
bool LoadOf<Endpoint>::begin_due() noexcept {
    const std::uint64_t before = begun_;
    while (phase_ == Phase::Calling && next_due_ <= figures_.now() && !free_.empty()) {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        call_in(slot, next_due_);
        next_due_ = due_of(begun_);
    }
    return begun_ != before;
}

template <class Endpoint>
void LoadOf<Endpoint>::on_completed(void* context, const rpc::CallResult& result) {
    auto& self = *static_cast<LoadOf*>(context);
    if (self.take(result, result.latency)) {
        // With at most `window` sessions each call stays on its session. With more, calls take the sessions in turn.
        const bool in_turn = self.sessions_.size() > self.options_.window;
        self.call(in_turn ? self.next_session() : static_cast<std::uint32_t>(result.tag));
    }
}

template <class Endpoint>
void LoadOf<Endpoint>::on_slot_completed(void* context, const rpc::CallResult& result) {
    auto& self = *static_cast<LoadOf*>(context);
    const auto index = static_cast<std::uint32_t>(result.tag);
    if (!self.is_sound(result)) {
        return;
    }
    const bool open = self.is_open_loop();
    const bool goes_on = self.take(result, open ? self.figures_.now() - self.slots_[index].due : result.latency);
    if (open) {
        self.free_.push_back(index);
    } else if (goes_on) {
        self.call_in(index, self.figures_.now());
    }
}

template class LoadOf<erpc::Endpoint>;
template class LoadOf<copyrpc::Endpoint>;
template class LoadOf<scalerpc::Endpoint>;
template class LoadOf<UdEndpoint>;

}  // namespace cairn::rpcbench
