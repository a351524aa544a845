// Composes and sends answers.
#include "rpc/scalerpc/answers.hpp"

#include <array>

namespace cairn::scalerpc {

// Returns where an answer is composed.
std::span<std::uint8_t> Answers::room_of(Guest& guest, const Outbox::Entry& answer) const noexcept {
    if (answer.is_short()) {
        return guest.outbox.room(answer.sequence);
    }
    return answer.lent != kNone ? long_.block(answer.lent) : answer.waiting.span();
}

// Finds a buffer for a long answer. If all are lent, it waits in memory of the pool. If the pool is empty, too, it has
// no room. It does not overtake waiting answers: one of its session would need the buffer.
void Answers::find_room(SessionId session, std::size_t bytes, Outbox::Entry& answer) noexcept {
    answer.lent = waiting_ == 0 ? long_.take(session) : kNone;
    if (answer.lent == kNone) {
        answer.waiting = pool_.allocate(static_cast<std::uint32_t>(bytes));
        waiting_ += answer.waiting.valid() ? 1U : 0U;
        statistics_.answers_put_off += answer.waiting.valid() ? 1 : 0;
    }
}

// Lends a buffer to a waiting answer. Returns false if it still waits.
bool Answers::lend(SessionId session, Outbox::Entry& answer) noexcept {
    if (!answer.waiting.valid()) [[likely]] {
        return true;
    }
    answer.lent = long_.take(session);
    if (answer.lent == kNone) {
        return false;
    }
    const std::span<std::uint8_t> block = long_.block(answer.lent);
    copy_bytes(block.data() + block.size() - answer.tail, answer.waiting.data + answer.waiting.bytes - answer.tail,
               answer.tail);
    pool_.release(answer.waiting);
    --waiting_;
    return true;
}

// Puts an answer. The first answer of a slice notifies the client that its slice has begun. Without memory a long
// answer is given up.
void Answers::put(Session& session, const Answer& wanted) noexcept {
    Guest& guest = *session.guest;
    Answer answer = wanted;
    if (guest.state == GuestState::Serving && !guest.told) {
        guest.told = true;
        answer.news = guest.grant;
    }
    Outbox::Entry entry;
    entry.sequence = answer.sequence;
    const std::size_t bytes = answer.payload.size() + kBlockOverhead;
    if (bytes > guest.outbox.short_bytes()) {
        find_room(session.id, bytes, entry);
        if (entry.is_short()) {
            ++statistics_.answers_given_up;
            answer.outcome = Outcome::Refused;
            answer.payload = {};
        }
    }
    entry.tail = put_answer(answer, room_of(guest, entry));
    guest.outbox.add(entry);
}

// Sends the grant at once. The client's first answer may have to wait for the requests that it could write now.
void Answers::tell_of_slice(Session& session, const Entry& entry) noexcept {
    Guest& guest = *session.guest;
    if (guest.state == GuestState::Serving && !guest.told &&
        (guest.fetched.count == 0 || entry.first + entry.count != guest.grant.accepted)) {
        guest.told = true;
        tell(session, guest.grant);
    }
}

void Answers::tell(Session& session, const News& news) noexcept {
    Guest& guest = *session.guest;
    sessions_.list(session);
    std::vector<Outbox::Entry>& answers = guest.outbox.entries();
    if (news.kind == News::Kind::Notice && !answers.empty()) {
        add_notice(room_of(guest, answers.back()), news);
        return;
    }
    statistics_.notices_alone += news.kind == News::Kind::Notice ? 1 : 0;
    (news.kind == News::Kind::Welcome ? guest.words.welcome : guest.words.control) = Control{++guest.words.count, news};
}

void Answers::flush(Session& session, Instant now) noexcept {
    Guest& guest = *session.guest;
    while (!guest.outbox.entries().empty()) {
        if (!send_run(session, run_of(session))) {
            sessions_.stall(session);
            return;
        }
    }
    if (!send_control(session, guest.words.welcome) || !send_control(session, guest.words.control)) {
        sessions_.stall(session);
    } else if (guest.state == GuestState::Leaving && !guest.words.notice_posted) {
        guest.words.notice_posted = true;
        guest.left = now;
    }
}

// Returns how many of the first answers go into one WRITE. Their blocks are neighbours, and rooms are as long as
// blocks.
std::size_t Answers::run_of(Session& session) const noexcept {
    const std::vector<Outbox::Entry>& answers = session.guest->outbox.entries();
    const bool packs = config_.features.packing && config_.shape.bytes <= kShortAnswer;
    std::size_t count = 1;
    while (packs && answers[0].is_short() && count < answers.size() && answers[count].is_short() &&
           answers[count].sequence == answers[count - 1].sequence + 1 &&
           config_.shape.index_of(answers[count].sequence) != 0 &&
           count * config_.shape.bytes + answers[0].tail <= kWriteMost) {
        ++count;
    }
    return count;
}

bool Answers::send_run(Session& session, std::size_t count) noexcept {
    Guest& guest = *session.guest;
    std::vector<Outbox::Entry>& answers = guest.outbox.entries();
    if (!lend(session.id, answers.front())) [[unlikely]] {
        return false;
    }
    const Outbox::Entry& first = answers.front();
    const auto bytes = static_cast<std::uint32_t>((count - 1) * config_.shape.bytes + first.tail);
    std::array<verbs::Sge, 1> pieces{};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.sges = pieces;
    request.rkey = session.peer.answers.rkey;
    request.remote_address =
        session.peer.answers.address + kControlBytes + config_.shape.end_of(answers[count - 1].sequence) - bytes;
    if (first.lent != kNone) {
        pieces[0] = long_.sge(first.lent, first.tail);
        request.wr_id = work_id(Work::LongAnswer, long_.loan_of(first.lent));
    } else {
        pieces[0] = short_.sge(guest.outbox.room(answers[count - 1].sequence), bytes);
        request.signalled = false;
    }
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        guest.kept[config_.shape.index_of(answers[i].sequence)].state = Guest::Taken::None;
    }
    if (count == answers.size()) [[likely]] {
        answers.clear();
    } else {
        answers.erase(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return true;
}

bool Answers::send_control(Session& session, std::optional<Control>& control) noexcept {
    if (!control) {
        return true;
    }
    const RawControl raw = control->raw();
    const bool welcome = control->news.kind == News::Kind::Welcome;
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.signalled = false;
    request.is_inline = true;
    request.inline_bytes = {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
    request.remote_address = session.peer.answers.address + (welcome ? kWelcomeOffset : 0);
    request.rkey = session.peer.answers.rkey;
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        return false;
    }
    control.reset();
    return true;
}

void Answers::forget(Session& session) noexcept {
    for (Outbox::Entry& answer : session.guest->outbox.entries()) {
        waiting_ -= answer.waiting.valid() ? 1U : 0U;
        pool_.release(answer.waiting);
    }
    session.guest->outbox.entries().clear();
    session.guest->words.control.reset();
    session.guest->words.welcome.reset();
    long_.end(session.id);
}

}  // namespace cairn::scalerpc
