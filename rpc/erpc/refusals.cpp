// Requests that are not answered: how a server says so, and what their client makes of it. No call waits for ever.
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

// As often as the client asks: neither this nor what it says is kept.
void Endpoint::refuse(Session& session, std::uint64_t request_number, RefuseReason reason, Instant now) noexcept {
    ++statistics_.requests_refused;
    send_control(session, ControlType::RequestRefused, now, reason, request_number);
}

bool Endpoint::refuse(const RequestHandle& handle, Instant now) noexcept {
    ServerSlot* const slot = executing_slot(handle);
    if (slot == nullptr) {
        return false;
    }
    slot->state = ServerSlotState::Answered;
    messages_.forget_answer(*slot);
    refuse(sessions_[handle.session.value], handle.request_number, RefuseReason::AnswerLost, now);
    return true;
}

void Endpoint::on_refused(Session& session, const Control& control, Instant now) noexcept {
    const auto slot_index = static_cast<std::uint32_t>(control.request_number % kSlotsPerSession);
    ClientSlot* const slot = session.client_slots != nullptr ? &(*session.client_slots)[slot_index] : nullptr;
    if (slot == nullptr || slot->call == kNone || slot->sends == 0 || slot->request_number != control.request_number) {
        statistics_.count(Drop::StaleResponse);
        return;
    }
    const auto end_refused = [&](CallStatus status) {
        session.last_heard = now;
        complete(session, slot_index, status, {}, now);
    };
    switch (control.reason) {
        case RefuseReason::NoHandler:
            end_refused(CallStatus::NoHandler);
            break;
        case RefuseReason::AnswerLost:
            end_refused(CallStatus::AnswerLost);
            break;
        case RefuseReason::TooLong:
            end_refused(CallStatus::RequestTooLong);
            break;
        case RefuseReason::GivenUp:
            // No server gives up earlier; one that says so all the time does not say how fast we send.
            if (slot->transfer != nullptr && slot->transfer->request_packets > 1 && now - slot->first_sent >= kRtoMin) {
                session.last_heard = now;
                restart(session, *slot, now);
            }
            break;
        case RefuseReason::Ahead:
            send_control(session, ControlType::Ping, now, RefuseReason::Ahead, control.request_number);
            break;
        case RefuseReason::None:
        case RefuseReason::NoSessionLeft:
        case RefuseReason::BadParameters:
        case RefuseReason::NotServing:
        case RefuseReason::PathTooNarrow:
            statistics_.count(Drop::UnknownSession);
            break;
    }
}

// Under the next number, so that packets of the first try which are still on their way are never taken for this one's.
void Endpoint::restart(Session& session, ClientSlot& slot, Instant now) noexcept {
    ++statistics_.calls_restarted;
    messages_.settle(calls_[slot.call].call.request);
    sent_slots_.remove(slot);
    rpc::MsgBuffer owned = end_transfer(session, slot);
    pool_.release(owned);
    slot.request_number = (slot.request_number + kSlotsPerSession) & kRequestNumberMask;
    slot.sends = 0;
    const std::uint32_t slot_index = slot.index();
    session.end_stall(slot_index);
    if (session.credits == 0) {
        stall(session, slot_index);
    } else {
        send_first(session, slot_index, now);
    }
}

}  // namespace cairn::erpc
