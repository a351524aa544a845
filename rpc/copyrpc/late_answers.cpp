#include "rpc/copyrpc/late_answers.hpp"

#include "lib/base/copy.hpp"
#include "rpc/copyrpc/session.hpp"

namespace cairn::copyrpc {

namespace {

constexpr std::uint64_t kLateShares = 4;

}  // namespace

bool LateAnswers::has_share(const SessionLateAnswers& own, std::uint64_t bytes) const noexcept {
    return own.bytes == 0 || own.bytes + bytes + bytes_ <= pool_.capacity_bytes() / kLateShares;
}

void LateAnswers::put_off(Session& session, const Message& answer, std::uint16_t charge) noexcept {
    SessionLateAnswers& own = *session.late;
    const auto bytes = static_cast<std::uint32_t>(answer.payload.size());
    LateAnswer late{{}, answer.call, answer.written, charge, answer.outcome};
    if (bytes != 0) {
        late.payload = has_share(own, bytes) ? pool_.allocate(bytes) : rpc::MsgBuffer{};
        if (late.payload.valid()) {
            copy_bytes(late.payload.data, answer.payload.data(), bytes);
            own.bytes += bytes;
            bytes_ += bytes;
        } else {
            late.outcome = Outcome::Refused;
            ++statistics_.answers_given_up;
        }
    }
    own.answers.push_back(late);
    ++statistics_.answers_put_off;
}

void LateAnswers::drop_oldest(SessionLateAnswers& own) noexcept {
    LateAnswer& oldest = own.answers.front();
    own.bytes -= oldest.payload.bytes;
    bytes_ -= oldest.payload.bytes;
    pool_.release(oldest.payload);
    own.answers.pop_front();
}

bool LateAnswers::serve(Session& session) noexcept {
    while (session.has_late()) {
        const LateAnswer& late = session.late->answers.front();
        Message answer;
        answer.answer = true;
        answer.call = late.call;
        answer.written = late.written;
        answer.outcome = late.outcome;
        answer.payload = late.payload.span();
        if (!session.rings->fits_answer(answer)) {
            return false;
        }
        session.rings->put_answer(answer, late.charge);
        drop_oldest(*session.late);
    }
    return true;
}

bool LateAnswers::holds_back(const Session& session, std::uint16_t charge) const noexcept {
    return session.has_late() && session.outstanding.tickets.empty() &&
           !has_share(*session.late, Message::answer_max(charge));
}

void LateAnswers::forget(Session& session) noexcept {
    while (session.has_late()) {
        drop_oldest(*session.late);
    }
    if (session.late != nullptr) {
        session.late->requests.clear();
    }
}

}  // namespace cairn::copyrpc
