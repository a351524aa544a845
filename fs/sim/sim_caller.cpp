#include "fs/sim/sim_caller.hpp"

namespace cairn::fs {

void SimCaller::Asked::await_suspend(std::coroutine_handle<> waiter) {
    const CallToken token = caller.cluster_.send(caller.client_, to, request);
    caller.under_ = {token, to, request, waiter};
}

void SimCaller::step() {
    if (under_.token != 0 && cluster_.is_answered(under_.token)) {
        answered_.bytes = cluster_.take_answer(under_.token);
        AnswerHead head;
        FieldReader in(answered_.bytes);
        AnswerHead::fields(in, head);
        answered_.error = head.error;
        std::exchange(under_, {}).waiter.resume();
    }
    if (is_calm && waits_for_calm_) {
        std::exchange(waits_for_calm_, {}).resume();
    }
}

void SimCaller::resend(ShardNumber shard) {
    if (under_.token != 0 && under_.to == shard && !cluster_.is_answered(under_.token)) {
        under_.token = cluster_.send_as(client_, shard, under_.request, 0, client_.sequence);
        ++resent_;
    }
}

SimCaller::Left SimCaller::die_as(std::uint64_t number) {
    const Left left{client_, under_.token, under_.to};
    life_ = std::make_unique<Tasks>();
    under_ = {};
    waits_for_calm_ = {};
    client_.number = number;
    client_.sequence = 0;
    return left;
}

}  // namespace cairn::fs
