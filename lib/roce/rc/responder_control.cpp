#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

Responder::Responder(Qpn qpn, const ResponderContext& context, wire::Service service) noexcept
    : qpn_(qpn),
      memory_(context.memory),
      counters_(context.counters),
      service_(service),
      reliable_(service != wire::Service::Uc),
      flush_(context.flush),
      held_(context.held),
      xrc_(context.xrc),
      receiver_{context.receives, context.completions, {}, {}} {}

void Responder::start(const QpAttributes& attributes, Pd pd) noexcept {
    drop_held();
    attributes_ = &attributes;
    receiver_.pd = pd;
    expected_ = attributes.receive_psn;
    msn_ = Msn{};
    message_ = {};
    receive_kept_ = false;
    reply_ = Reply::None;
    awaits_resend_ = false;
    dropped_ = false;
    failed_ = false;
    unacknowledged_ = 0;
    saved_count_ = 0;
    queued_answers_ = 0;
    copied_answers_ = 0;
    saved_ = {};
}

void Responder::drop_held() noexcept {
    if (held_ != nullptr) {
        held_->release_all(chain_);
    }
}

void Responder::stop() noexcept {
    drop_held();
    if (!failed_) {
        drop_answers();
        reply_ = Reply::None;
    }
    flush_unfinished();
}

void Responder::drop_answers() noexcept {
    for (SavedAnswer& saved : saved_) {
        saved.queued = false;
    }
    queued_answers_ = 0;
}

void Responder::flush_unfinished() noexcept {
    const bool unfinished = message_.kind == MessageKind::Send || receive_kept_;
    message_ = {};
    receive_kept_ = false;
    const Receiver* const receiver = xrc_ ? xrc_.find(receiver_.srqn) : &receiver_;
    if (unfinished && receiver != nullptr) {  // else it ended with its queue
        (void)receiver->completions->push(receive_completion(receive_.wr_id, CompletionStatus::Flushed));
    }
}

void Responder::check_invariants() const noexcept {
    std::uint32_t queued = 0;
    for (const SavedAnswer& saved : saved_) {
        if (!saved.queued) {
            continue;
        }
        ++queued;
        CAIRN_ASSERT(saved.from.since(saved.first) >= 0 && saved.next.since(saved.from) >= 0);
        CAIRN_ASSERT(saved.until.since(saved.next) >= 0 && saved.last.since(saved.until) >= 0);
        CAIRN_ASSERT(saved.last.since(expected_) < 0);
    }
    CAIRN_ASSERT(queued == queued_answers_);
    CAIRN_ASSERT(!receive_kept_ || (!reliable_ && message_.kind != MessageKind::Send));
    CAIRN_ASSERT(reliable_ || !has_response());
    CAIRN_ASSERT(message_.kind == MessageKind::None || message_.done_bytes <= message_.total_bytes);
    CAIRN_ASSERT(unacknowledged_ <= kAckEveryMessages);
}

}  // namespace cairn::roce::rc
