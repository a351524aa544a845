// Completer: takes the answers of the peer, places their data, and completes requests in order (IBTA vol. 1, 9.7.5,
// 9.7.6).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/rc/judge_response.hpp"
#include "lib/roce/rc/send_side.hpp"

namespace cairn::roce::rc {

// The reason why the queue pair must stop its send queue. The request that failed is complete, the requests after it
// are not.
enum class RequesterStop : std::uint8_t { Failed, CqOverrun };

// The effect of an answer on the requester. In addition `unacknowledged` may have moved.
struct AnswerEffect {
    enum class Kind : std::uint8_t {
        None,
        DataTaken,    // the answer was a request's own: requests after it may have been acknowledged before
        NakSequence,  // the peer misses `psn`
        ImpliedNak,   // the peer has `psn`, and answers before it were lost
        Map,          // a selective peer misses `psn`; the payload shows the later packets that are held
        NotReady,     // the peer asks for `psn` again, after `timer`
        Failed,       // the oldest request failed and is complete
        CqOverrun,    // a completion was lost
    };
    Kind kind = Kind::None;
    wire::RnrTimer timer{};
    Psn psn{};

    [[nodiscard]] bool is_end() const noexcept { return kind == Kind::Failed || kind == Kind::CqOverrun; }
};

// Part of a requester. No I/O, no clock, no allocation: an answer changes the send side and the completion queue. Its
// effect reports everything else.
class Completer {
public:
    Completer(const SendSide& side, CompletionQueue& completions) noexcept : side_(side), completions_(completions) {}

    // Takes an acknowledgement or response for this queue pair.
    [[nodiscard]] AnswerEffect on_answer(const wire::Packet& packet) noexcept;
    // Completes requests, since the peer executed everything up to `psn`. Stops at a request that needs its own answer.
    // Returns false if a completion was lost.
    [[nodiscard]] bool acknowledge(Psn psn) noexcept;

    // Completes the oldest request, and on success the local requests after it that are done. Returns false if a
    // completion was lost.
    [[nodiscard]] bool complete_head(CompletionStatus status) noexcept;
    // Completes the oldest request, which failed.
    [[nodiscard]] RequesterStop fail(CompletionStatus status) noexcept {
        return complete_head(status) ? RequesterStop::Failed : RequesterStop::CqOverrun;
    }
    // Completes all requests as flushed, in order. Then nothing is outstanding any more. Returns false if a completion
    // was lost.
    [[nodiscard]] bool flush() noexcept;

    [[nodiscard]] SendSide& side() noexcept { return side_; }
    [[nodiscard]] const SendSide& side() const noexcept { return side_; }

private:
    using Kind = AnswerEffect::Kind;

    [[nodiscard]] AnswerEffect on_acknowledge(const wire::Packet& packet) noexcept;
    [[nodiscard]] AnswerEffect on_nak(wire::NakCode code, Psn psn) noexcept;
    [[nodiscard]] AnswerEffect on_not_ready(wire::RnrTimer timer, Psn psn) noexcept;
    [[nodiscard]] AnswerEffect on_map(const wire::Packet& packet) noexcept;
    [[nodiscard]] AnswerEffect on_data(const wire::Packet& packet) noexcept;
    [[nodiscard]] CompletionStatus take_data(const wire::Packet& packet, const SendWqe& wqe) noexcept;
    [[nodiscard]] bool complete_one(CompletionStatus status) noexcept;
    [[nodiscard]] AnswerEffect end(CompletionStatus status) noexcept {
        return {fail(status) == RequesterStop::Failed ? Kind::Failed : Kind::CqOverrun};
    }

    SendSide side_;
    CompletionQueue& completions_;
};

}  // namespace cairn::roce::rc
