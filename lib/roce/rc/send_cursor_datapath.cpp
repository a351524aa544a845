#include "lib/roce/rc/send_cursor.hpp"

namespace cairn::roce::rc {

void SendCursor::skip_spared(const SendSide& side, ResendPlan& plan) noexcept {
    while (!is_at_end(side) && side.queue.at(at_.position).flags.started && psn(side).since(side.sent) < 0) {
        const SendWqe& wqe = side.queue.at(at_.position);
        if (is_local(wqe.opcode)) {
            step_over_local();
            continue;
        }
        if (plan.is_behind(psn(side))) {
            at_ = is_queued(front_, side) ? front_ : Place{side.queue.head(), 0};
            break;
        }
        if (!plan.spares(psn(side), side.unacknowledged, has_own_answer(wqe.opcode))) {
            return;
        }
        step(side);
    }
    plan.end_pass();
}

}  // namespace cairn::roce::rc
