// Carries the questions and answers of SliceClock, by calls of any RPC system. It uses other sessions than those with
// synchronised slices: an answer that waited for a slice would be useless. A question is answered in the turn in which
// it came, and a turn has one time. So DeltaT is 0. The length of the turn counts as way, and half of it is an error.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/worker/worker.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"
#include "rpc/scalerpc/slice_clock.hpp"

namespace cairn::scalerpc {

// Answers the questions of followers, which are calls of this type. The clock outlives the endpoint. Errors: see
// set_handler().
template <class TimeEndpoint>
Status serve_time(TimeEndpoint& time_endpoint, std::uint8_t type, SliceClock& clock) {
    return time_endpoint.set_handler(
        type,
        [](void* context, const rpc::Request<TimeEndpoint>& request) {
            const RawTimeAnswer raw = static_cast<SliceClock*>(context)->answer(request.now, request.now).raw();
            (void)request.endpoint.answer(request.handle, {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)},
                                          request.now);
        },
        &clock, sizeof(RawTimeAnswer));
}

// Asks a time server once per period, over a session of the time_endpoint. A tenant of that endpoint's worker.
template <class TimeEndpoint>
class TimeFollower final : private worker::Tenant {
public:
    // The worker, the session and the clock outlive the object. The object ends after the time_endpoint: until then its
    // calls may be under way.
    TimeFollower(worker::Worker& worker, TimeEndpoint& time_endpoint, SessionId session, std::uint8_t type,
                 SliceClock& clock)
        : worker_(worker),
          endpoint_(time_endpoint),
          session_(session),
          type_(type),
          clock_(clock),
          tenancy_(worker.add(*this)) {}

    [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
    [[nodiscard]] std::uint64_t slow() const noexcept { return slow_; }
    [[nodiscard]] std::uint64_t failed() const noexcept {
        return failed_;
    }  // without an answer, or with an invalid
       // one

private:
    bool on_turn(Instant now) noexcept override {
        if (under_way_ || now < next_) {
            return false;
        }
        rpc::Call call;
        call.type = type_;
        call.deadline = now + clock_.config().period;
        call.context = this;
        call.completion = [](void* context, const rpc::CallResult& result) {
            static_cast<TimeFollower*>(context)->on_answer(result);
        };
        next_ = now + clock_.config().period;
        under_way_ = endpoint_.post(session_, call, now).verdict == rpc::PostVerdict::Posted;
        failed_ += under_way_ ? 0U : 1U;
        return under_way_;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return under_way_ ? Instant::never() : next_; }

    void on_answer(const rpc::CallResult& result) noexcept {
        under_way_ = false;
        const auto answer = result.status == rpc::CallStatus::Ok ? TimeAnswer::parse(result.response) : std::nullopt;
        const Instant now = worker_.now();
        const auto verdict =
            answer ? clock_.on_answer(now - result.latency, now, *answer) : SliceClock::Verdict::Nonsense;
        taken_ += verdict == SliceClock::Verdict::Taken ? 1U : 0U;
        slow_ += verdict == SliceClock::Verdict::Slow ? 1U : 0U;
        failed_ += verdict == SliceClock::Verdict::Nonsense ? 1U : 0U;
    }

    worker::Worker& worker_;
    TimeEndpoint& endpoint_;
    SessionId session_;
    std::uint8_t type_;
    SliceClock& clock_;
    Instant next_{};
    bool under_way_ = false;
    std::uint64_t taken_ = 0;
    std::uint64_t slow_ = 0;
    std::uint64_t failed_ = 0;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::scalerpc
