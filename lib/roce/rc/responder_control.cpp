#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

Responder::Responder(Qpn qpn, const ResponderContext& context, wire::Service service)
    : qpn_(qpn),
      memory_(context.memory),
      counters_(context.counters),
      service_(service),
      reliable_(service != wire::Service::Uc),
      flush_(context.flush),
      xrc_(context.xrc),
      write_sink_(context.writes),
      receiver_{context.receives, context.completions, {}, {}},
      early_(context.held) {
    // An XRC target does not know the queues of its messages yet.
    if (context.receives == nullptr ? bool{xrc_} : context.receives->max_sges() > ReceiveWqe::kFewSges) {
        receive_.many = std::make_unique<Sge[]>(kMaxSges);
        receive_.wqe.many = receive_.many.get();
    }
}

void Responder::start(const QpAttributes& attributes, Pd pd) noexcept {
    early_.start();
    attributes_ = &attributes;
    receiver_.pd = pd;
    expected_ = attributes.receive_psn;
    msn_ = Msn{};
    message_ = {};
    receive_.is_kept = false;
    reply_.kind = Reply::None;
    stage_ = Stage::Running;
    delayed_acks_.start(attributes.delayed_acks);
    copied_answers_ = 0;
    answers_ = {};
}

void Responder::stop() noexcept {
    drop_held();
    delayed_acks_.note_acknowledged();  // no acknowledgement will leave
    if (!failed()) {
        drop_answers();
        reply_.kind = Reply::None;
    }
    flush_unfinished();
}

void Responder::flush_unfinished() noexcept {
    const bool unfinished = message_.kind == MessageKind::Send || receive_.is_kept;
    message_ = {};
    receive_.is_kept = false;
    const Receiver* const receiver = xrc_ ? xrc_.find(receiver_.srqn) : &receiver_;
    if (unfinished && receiver != nullptr) {  // else it ended with its queue
        (void)receiver->completions->push(receive_completion(receive_.wqe.head.wr_id, CompletionStatus::Flushed));
    }
}

void Responder::check_invariants() const noexcept {
    answers_.check_invariants(expected_);
    CAIRN_ASSERT(!receive_.is_kept || (!reliable_ && message_.kind != MessageKind::Send));
    CAIRN_ASSERT(reliable_ || !has_response());
    CAIRN_ASSERT(message_.kind == MessageKind::None || message_.done_bytes <= message_.total_bytes);
    delayed_acks_.check_invariants();
}

void SavedAnswers::check_invariants(Psn expected) const noexcept {
    std::uint32_t due = 0;
    for (const SavedAnswer& saved : all_) {
        if (!saved.is_due()) {
            continue;
        }
        ++due;
        CAIRN_ASSERT(saved.from.since(saved.first) >= 0 && saved.next.since(saved.from) >= 0);
        CAIRN_ASSERT(saved.until.since(saved.next) >= 0 && saved.last.since(saved.until) >= 0);
        CAIRN_ASSERT(saved.last.since(expected) < 0);
    }
    CAIRN_ASSERT(due == due_);
}

}  // namespace cairn::roce::rc
