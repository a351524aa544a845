// Work requests that send nothing: done when their turn comes, complete in the order of all (IBTA vol. 1, 10.8.3.3).
#include "lib/roce/rc/requester.hpp"

namespace cairn::roce::rc {

// They take no PSN: `last` is the one before `first`. Going back passes over those that are done.
bool Requester::run_local(bool drain, RequesterResult& result) noexcept {
    while (cursor_ != queue_.tail() && is_local(queue_.at(cursor_).opcode)) {
        SendWqe& wqe = queue_.at(cursor_);
        const bool oldest = cursor_ == queue_.head();
        if (!wqe.started) {
            // An invalidation takes memory away that what is on its way may need once more.
            const bool waits = wqe.opcode == WorkOpcode::LocalInvalidate ? !oldest : wqe.fence && reads_out_ != 0;
            if (drain || waits) {
                return false;
            }
            if (!execute_local(wqe)) {
                result = oldest ? fail(CompletionStatus::MemoryManagement) : RequesterResult::Ok;
                return false;
            }
            wqe.started = true;
            wqe.first = sent_;
            wqe.last = sent_.plus(Psn::kMask);
        }
        ++cursor_;
        if (oldest && !complete_head(CompletionStatus::Success)) {
            result = RequesterResult::CqOverrun;
            return false;
        }
    }
    return true;
}

bool Requester::execute_local(const SendWqe& wqe) noexcept {
    const KeyUser user{pd_, qpn_};
    if (wqe.opcode == WorkOpcode::BindWindow) {
        bound_windows_ = true;
        return memory_.bind_window(wqe.binding(), user) == MemoryVerdict::Ok;
    }
    if (memory_.judge_invalidate(wqe.invalidate, user) != MemoryVerdict::Ok) {
        return false;
    }
    memory_.invalidate(wqe.invalidate);
    return true;
}

}  // namespace cairn::roce::rc
