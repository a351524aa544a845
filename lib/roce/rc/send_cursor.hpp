// The requester's next packet: a position in the send queue, and a packet of the request there.
#pragma once

#include <cstdint>

#include "lib/roce/rc/resend_plan.hpp"
#include "lib/roce/rc/send_side.hpp"

namespace cairn::roce::rc {

// Going back moves the cursor to the oldest PSN without an answer. The cursor also knows how far it had come.
class SendCursor {
public:
    // Moves to the oldest request, of which nothing was sent.
    void start(const SendSide& side) noexcept {
        at_ = {side.queue.head(), 0};
        front_ = at_;
    }

    [[nodiscard]] std::uint32_t position() const noexcept { return at_.position; }
    [[nodiscard]] std::uint32_t packet() const noexcept { return at_.packet; }
    [[nodiscard]] bool is_at_end(const SendSide& side) const noexcept { return at_.position == side.queue.tail(); }
    [[nodiscard]] bool is_at_oldest(const SendSide& side) const noexcept { return at_.position == side.queue.head(); }
    // Returns true if the request was completed before it was sent again.
    [[nodiscard]] bool is_left_behind(const SendSide& side) const noexcept { return !is_queued(at_, side); }
    // Returns the PSN that is sent next.
    [[nodiscard]] Psn psn(const SendSide& side) const noexcept {
        if (!is_at_end(side) && side.queue.at(at_.position).flags.started) {
            return side.queue.at(at_.position).first.plus(at_.packet);
        }
        return side.sent;
    }

    // Moves to the next packet, perhaps the next request's.
    void step(const SendSide& side) noexcept {
        const SendWqe& wqe = side.queue.at(at_.position);
        step(has_own_answer(wqe.opcode) || wqe.first.plus(at_.packet) == wqe.last);
    }
    // As above; `last`: the packet is its request's last.
    void step(bool last) noexcept { at_ = last ? Place{at_.position + 1, 0} : Place{at_.position, at_.packet + 1}; }
    void step_over_local() noexcept { ++at_.position; }
    // Moves to the oldest PSN without an answer.
    void go_back(const SendSide& side) noexcept {
        at_ = {side.queue.head(), 0};
        if (!side.queue.empty() && side.queue.at(at_.position).flags.started) {
            const Psn first = side.queue.at(at_.position).first;
            at_.packet = static_cast<std::uint32_t>(side.unacknowledged.since(first));
        }
    }
    // Notes that a packet left for the first time: packets after the cursor were never sent.
    void note_front() noexcept { front_ = at_; }
    // Moves past all packets that a selective peer has; at the end of a pass to packets that were never sent.
    void skip_spared(const SendSide& side, ResendPlan& plan) noexcept;

private:
    struct Place {
        std::uint32_t position = 0;
        std::uint32_t packet = 0;
    };
    [[nodiscard]] static bool is_queued(const Place& place, const SendSide& side) noexcept {
        return place.position - side.queue.head() <= side.queue.tail() - side.queue.head();
    }

    Place at_{};
    Place front_{};
};

}  // namespace cairn::roce::rc
