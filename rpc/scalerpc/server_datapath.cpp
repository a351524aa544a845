// Requests handed to their handlers, and answers sent.
#include "rpc/scalerpc/server.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::scalerpc {

Server::Server(const EndpointConfig& config, Endpoint& endpoint, const Types& types, Sessions& sessions,
               rpc::MsgPool& pool, Statistics& statistics)
    : config_(config),
      endpoint_(endpoint),
      types_(types),
      sessions_(sessions),
      pool_(pool),
      statistics_(statistics),
      long_(config.shape, pool),
      jobs_(*this, pool, config.background) {}

// mutants: scalerpc-server-on-request
std::optional<Breach> Server::on_request(Session& session, const Request& request, Instant now) noexcept {
    Guest& guest = *session.guest;
    Guest::Kept& kept = guest.kept[config_.shape.index_of(request.sequence)];
    if (kept.state != Guest::Taken::None) {
        return Breach::Overdrawn;
    }
    ++open_;
    kept.state = Guest::Taken::Handled;
    kept.sequence = request.sequence;
    kept.type = request.type;
    kept.taken = now;
    ++guest.next;
    ++guest.share.requests;
    guest.share.bytes += request.payload.size();
    session.heard = true;
    const RequestHandle handle{session.id, std::uint64_t{guest.generation} << 32U | request.sequence};
    const auto& type = type_of(request.type);
    const Instant asked = std::min(std::exchange(kept.asked, Instant::never()), now);
    const Instant deadline = request.left_us != 0 ? asked + microseconds(request.left_us) : Instant::never();
    if (request.given_up || now >= deadline) [[unlikely]] {
        ++statistics_.requests_expired;
        end({&session, &kept}, Outcome::Expired, {});
        return std::nullopt;
    }
    if (!type.registered()) {
        ++statistics_.requests_without_handler;
        end({&session, &kept}, Outcome::NoHandler, {});
        return std::nullopt;
    }
    ++statistics_.requests_handled;
    if (type.background != nullptr) {
        jobs_.add({handle, request.type, request.payload, deadline});
    } else {
        execute(type, {endpoint_, *this, handle, request.type, request.payload, now});
        const Found unanswered = find(handle);
        if (unanswered.kept != nullptr && unanswered.kept->state == Guest::Taken::Handled) [[unlikely]] {
            (void)drop(handle);
        }
    }
    return std::nullopt;
}

void Server::keep(const RequestHandle& request) noexcept {
    if (const Found found = find(request); found.kept != nullptr) {
        found.kept->state = Guest::Taken::Later;
    }
}

// mutants: scalerpc-server-execute
void Server::execute(const Types::value_type& type, const rpc::Request<Endpoint>& request) noexcept {
    if (config_.clock == nullptr || !legacy_.watches(request.type)) [[likely]] {
        type.function(type.context, request);
        return;
    }
    const Instant began = config_.clock();
    type.function(type.context, request);
    if (config_.clock() - began > config_.groups.slice) {
        legacy_.on_long(request.type);
    }
}

// mutants: scalerpc-server-lasting
std::optional<std::span<const std::uint8_t>> Server::lasting(const RequestHandle& handle,
                                                             std::span<const std::uint8_t> payload) noexcept {
    const Found found = find(handle);
    rpc::MsgBuffer& copy = found.kept->request;
    copy = pool_.allocate(static_cast<std::uint32_t>(payload.size()));
    found.kept->answer = pool_.allocate(type_of(found.kept->type).response_bytes_max);
    if (!copy.valid() || !found.kept->answer.valid()) {
        ++statistics_.answers_given_up;
        end(found, Outcome::Refused, {});
        return std::nullopt;
    }
    copy_bytes(copy.data, payload.data(), payload.size());
    return std::span<const std::uint8_t>(copy.data, payload.size());
}

// A handler that was registered meanwhile may have longer answers than the one for which there is room.
// mutants: scalerpc-server-hand-over
void Server::hand_over(const RequestHandle& handle, rpc::BackgroundJob& job) noexcept {
    const Found found = find(handle);
    job.request = std::exchange(found.kept->request, {});
    job.response = std::exchange(found.kept->answer, {});
    if (job.request.valid()) {
        job.response_bytes_max = std::min(job.response_bytes_max, job.response.capacity);
    }
}

Server::Found Server::find(const RequestHandle& handle) noexcept {
    Session* const session = sessions_.find(handle.session);
    if (session == nullptr || !session->guest || session->guest->generation != handle.request_number >> 32U) {
        return {};
    }
    const auto sequence = static_cast<std::uint32_t>(handle.request_number);
    Guest::Kept& kept = session->guest->kept[config_.shape.index_of(sequence)];
    return kept.state != Guest::Taken::None && kept.sequence == sequence ? Found{session, &kept} : Found{};
}

std::span<std::uint8_t> Server::reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    const Found found = find(handle);
    if (found.kept == nullptr || bytes > BlockShape::kMostBytes) {
        return {};
    }
    rpc::MsgBuffer& answer = found.kept->answer;
    if (answer.capacity < bytes || !answer.valid()) {
        pool_.release(answer);
        answer = pool_.allocate(bytes);
    }
    answer.bytes = bytes;
    return answer.valid() ? answer.span() : std::span<std::uint8_t>{};
}

bool Server::respond(const RequestHandle& handle) noexcept {
    const Found found = find(handle);
    if (found.kept == nullptr) {
        return false;
    }
    end(found, Outcome::Answered, found.kept->answer.span());
    return true;
}

bool Server::answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept {
    const Found found = find(handle);
    if (found.kept == nullptr) {
        return false;
    }
    end(found, Outcome::Answered, message);
    return true;
}

bool Server::drop(const RequestHandle& request) noexcept {
    const Found found = find(request);
    if (found.kept == nullptr) {
        return false;
    }
    ++statistics_.requests_refused;
    end(found, Outcome::Refused, {});
    return true;
}

bool Server::expire(const RequestHandle& handle) noexcept {
    const Found found = find(handle);
    CAIRN_ASSERT(found.kept != nullptr);
    ++statistics_.requests_expired;
    end(found, Outcome::Expired, {});
    return true;
}

// A caller whose block is too small for the answer learns that.
// mutants: scalerpc-server-end
void Server::end(const Found& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept {
    Answer answer;
    answer.sequence = request.kept->sequence;
    answer.outcome = message.size() > config_.shape.message_max() ? Outcome::TooLong : outcome;
    answer.payload = answer.outcome == Outcome::Answered ? message : std::span<const std::uint8_t>{};
    put(*request.session, answer);
    if (legacy_.watches(request.kept->type) && now_ - request.kept->taken > config_.groups.slice) [[unlikely]] {
        legacy_.on_long(request.kept->type);
    }
    pool_.release(request.kept->answer);
    pool_.release(request.kept->request);
    request.kept->state = Guest::Taken::None;
    --open_;
    sessions_.list(*request.session);
}

// The first answer of a slice tells the client that its slice has begun. Without memory a long answer is given up.
// mutants: scalerpc-server-put
void Server::put(Session& session, const Answer& wanted) noexcept {
    Guest& guest = *session.guest;
    Answer answer = wanted;
    if (guest.state == GuestState::Serving && !guest.told) {
        guest.told = true;
        answer.news = guest.grant;
    }
    Outbox::Entry entry{answer.sequence, 0, kNone};
    if (answer.payload.size() + kBlockOverhead > guest.outbox.short_bytes()) {
        entry.lent = long_.take(session.id);
        if (entry.lent == kNone) {
            ++statistics_.answers_given_up;
            answer.outcome = Outcome::Refused;
            answer.payload = {};
        }
    }
    entry.tail = put_answer(answer, entry.lent == kNone ? guest.outbox.room(answer.sequence) : long_.block(entry.lent));
    guest.outbox.add(entry);
}

void Server::tell(Session& session, const News& news) noexcept {
    Guest& guest = *session.guest;
    sessions_.list(session);
    std::vector<Outbox::Entry>& answers = guest.outbox.entries();
    if (news.kind == News::Kind::Notice && !answers.empty()) {
        const Outbox::Entry& last = answers.back();
        add_notice(last.lent == kNone ? guest.outbox.room(last.sequence) : long_.block(last.lent), news);
        return;
    }
    statistics_.notices_alone += news.kind == News::Kind::Notice ? 1 : 0;
    (news.kind == News::Kind::Welcome ? guest.welcome : guest.control) = Control{++guest.controls, news};
}

void Server::flush(Session& session) noexcept {
    Guest& guest = *session.guest;
    while (!guest.outbox.entries().empty()) {
        if (!send_run(session, run_of(session))) {
            sessions_.stall(session);
            return;
        }
    }
    if (!send_control(session, guest.welcome) || !send_control(session, guest.control)) {
        sessions_.stall(session);
    }
}

// Returns how many of the first answers are one WRITE: those of neighbouring blocks, if all of it is short.
std::size_t Server::run_of(Session& session) const noexcept {
    const std::vector<Outbox::Entry>& answers = session.guest->outbox.entries();
    std::size_t count = 1;
    while (config_.features.packing && answers[0].lent == kNone && count < answers.size() &&
           answers[count].lent == kNone && answers[count].sequence == answers[count - 1].sequence + 1 &&
           config_.shape.index_of(answers[count].sequence) != 0 &&
           count * config_.shape.bytes + answers[0].tail <= kShortAnswer) {
        ++count;
    }
    return count;
}

bool Server::send_run(Session& session, std::size_t count) noexcept {
    Guest& guest = *session.guest;
    std::vector<Outbox::Entry>& answers = guest.outbox.entries();
    const Outbox::Entry& first = answers.front();
    const auto bytes = static_cast<std::uint32_t>((count - 1) * config_.shape.bytes + first.tail);
    std::array<std::uint8_t, kShortAnswer> image;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
    std::array<verbs::Sge, 1> pieces{};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.rkey = session.peer.answers.rkey;
    request.remote_address =
        session.peer.answers.address + kControlBytes + config_.shape.end_of(answers[count - 1].sequence) - bytes;
    if (first.lent != kNone) {
        pieces[0] = long_.sge(first.lent, first.tail);
        request.sges = pieces;
        request.wr_id = work_id(Work::LongAnswer, long_.loan_of(first.lent));
    } else {
        std::fill_n(image.begin(), bytes, std::uint8_t{0});
        for (std::size_t i = 0; i < count; ++i) {
            const std::span<const std::uint8_t> room = guest.outbox.room(answers[i].sequence);
            const std::size_t end = bytes - (count - 1 - i) * config_.shape.bytes;
            std::copy_n(room.end() - answers[i].tail, answers[i].tail,
                        image.begin() + static_cast<std::ptrdiff_t>(end - answers[i].tail));
        }
        request.signalled = false;
        request.is_inline = true;
        request.inline_bytes = std::span(image).first(bytes);
    }
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        return false;
    }
    answers.erase(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(count));
    return true;
}

bool Server::send_control(Session& session, std::optional<Control>& control) noexcept {
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

// mutants: scalerpc-server-forget
void Server::forget(Session& session) noexcept {
    for (Guest::Kept& kept : session.guest->kept) {
        if (kept.state != Guest::Taken::None) {
            pool_.release(kept.answer);
            pool_.release(kept.request);
            kept.state = Guest::Taken::None;
            --open_;
        }
    }
    session.guest->outbox.entries().clear();
    session.guest->control.reset();
    session.guest->welcome.reset();
    long_.end(session.id);
}

}  // namespace cairn::scalerpc
