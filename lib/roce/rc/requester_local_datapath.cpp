// Work requests that send nothing: done in their turn, complete in the order of all (IBTA vol. 1, 10.8.3.3).
#include "lib/roce/rc/requester.hpp"

namespace cairn::roce::rc {

// Runs them. They take no PSN: `last` is the one before `first`. Going back passes over requests that are done.
bool Requester::run_local(bool drain, std::optional<RequesterStop>& stop) noexcept {
    SendSide& side = this->side();
    while (!cursor_.is_at_end(side) && is_local(side.queue.at(cursor_.position()).opcode)) {
        SendWqe& wqe = side.queue.at(cursor_.position());
        const bool oldest = cursor_.is_at_oldest(side);
        if (!wqe.flags.started) {
            const bool waits = side.ends_region(wqe) ? !oldest : wqe.flags.fence && side.reads_out != 0;
            if (drain || waits) {
                return false;
            }
            if (!execute_local(wqe)) {
                stop = oldest ? std::optional(completer_.fail(CompletionStatus::MemoryManagement)) : std::nullopt;
                return false;
            }
            wqe.flags.started = true;
            wqe.first = side.sent;
            wqe.last = side.sent.plus(Psn::kMask);
        }
        cursor_.step_over_local();
        if (oldest && !completer_.complete_head(CompletionStatus::Success)) {
            stop = RequesterStop::CqOverrun;
            return false;
        }
    }
    return true;
}

bool Requester::execute_local(const SendWqe& wqe) noexcept {
    SendSide& side = this->side();
    const KeyUser user{side.pd, side.qpn};
    if (wqe.opcode == WorkOpcode::BindWindow) {
        bound_windows_ = true;
        return !side.memory.bind_window(wqe.binding(), user);
    }
    if (side.memory.judge_invalidate(wqe.invalidate, user)) {
        return false;
    }
    side.memory.invalidate(wqe.invalidate);
    return true;
}

}  // namespace cairn::roce::rc
