// Hands requests to their handlers, and sends answers.
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
      answers_(config, sessions, pool, statistics),
      jobs_(*this, pool, config.background, statistics.requests_handled) {}

// If the last answer of this block was not sent, an honest client cannot use the block again: it does not read answers.
Server::Taking Server::on_request(Session& session, const Request& request, Instant now) noexcept {
    Guest& guest = *session.guest;
    Guest::Kept& kept = guest.kept[config_.shape.index_of(request.sequence)];
    if (kept.state != Guest::Taken::None) {
        return Taking::Overdrawn;
    }
    ++open_;
    guest.take(kept, request, now);
    session.heard = true;
    const Instant told = std::exchange(kept.asked, Instant::never());
    const Instant seen = std::min(std::exchange(kept.waits_since, Instant::never()), now);
    const Instant deadline = rpc::deadline_of(request.left_us, std::min(told, seen));
    const RequestHandle handle{session.id, std::uint64_t{guest.generation} << 32U | request.sequence};
    const auto& type = legacy_.of(request.type, types_[request.type], now);
    if (request.given_up || now >= deadline) [[unlikely]] {
        ++statistics_.requests_expired;
        end({&session, &kept}, Outcome::Expired, {});
    } else if (!type.registered()) {
        ++statistics_.requests_without_handler;
        end({&session, &kept}, Outcome::NoHandler, {});
    } else if (type.background == nullptr) {
        execute(type, {endpoint_, *this, handle, request.type, request.payload, now});
    } else if (!jobs_.add({handle, request.type, request.payload, deadline})) {
        --open_;
        guest.put_back(kept, request);
        kept.asked = told;
        kept.waits_since = seen;
        holds_back_ = true;
        return Taking::Waits;
    } else {
        statistics_.legacy_requests += types_[request.type].background == nullptr ? 1 : 0;
    }
    return Taking::Taken;
}

void Server::keep(const RequestHandle& request) noexcept {
    if (const Found found = find(request); found.kept != nullptr) {
        found.kept->state = Guest::Taken::Later;
    }
}

// Runs a handler. If it neither answers nor keeps the request, the request is refused.
void Server::execute(const Types::value_type& type, const rpc::Request<Endpoint>& request) noexcept {
    declined_ = false;
    const bool watched = legacy_.watches(request.type);
    const bool timed = watched && config_.clock != nullptr;
    const Instant began = timed ? config_.clock() : Instant{};
    type.function(type.context, request);
    const bool was_long = timed && config_.clock() - began > config_.groups.slice;
    statistics_.requests_handled += declined_ ? 0 : 1;
    const Found unanswered = find(request.handle);
    const bool later = unanswered.kept != nullptr && unanswered.kept->state == Guest::Taken::Later;
    if (watched && (was_long || !later)) {
        note_executed(request.type, was_long);
    }
    if (unanswered.kept != nullptr && !later) [[unlikely]] {
        (void)drop(request.handle);
    }
}

void Server::note_executed(std::uint8_t type, bool was_long) noexcept {
    statistics_.legacy_types += legacy_.on_executed(type, was_long, now_) ? 1 : 0;
}

std::optional<std::span<const std::uint8_t>> Server::lasting(const RequestHandle& handle,
                                                             std::span<const std::uint8_t> payload) noexcept {
    const Found found = find(handle);
    rpc::MsgBuffer& copy = found.kept->request;
    copy = pool_.allocate(static_cast<std::uint32_t>(payload.size()));
    found.kept->answer = pool_.allocate(type_of(found.kept->type).response_bytes_max);
    if (!copy.valid() || !found.kept->answer.valid()) {
        pool_.release(copy);
        pool_.release(found.kept->answer);
        return std::nullopt;
    }
    copy_bytes(copy.data, payload.data(), payload.size());
    return std::span<const std::uint8_t>(copy.data, payload.size());
}

// A handler that was registered meanwhile may have longer answers than the room allows.
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
    return kept.is_open() && kept.sequence == sequence ? Found{session, &kept} : Found{};
}

std::span<std::uint8_t> Server::reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    const Found found = find(handle);
    if (found.kept == nullptr) {
        return {};
    }
    const std::span<std::uint8_t> room =
        bytes <= BlockShape::kMostBytes ? pool_.resize(found.kept->answer, bytes) : std::span<std::uint8_t>{};
    found.kept->lacks_room = room.data() == nullptr;
    return room;
}

// Sends the reserved answer. If reserve() found no room, there is no answer.
bool Server::respond(const RequestHandle& handle) noexcept {
    const Found found = find(handle);
    if (found.kept == nullptr) {
        return false;
    }
    statistics_.answers_given_up += found.kept->lacks_room ? 1 : 0;
    end(found, found.kept->lacks_room ? Outcome::Refused : Outcome::Answered, found.kept->answer.span());
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

bool Server::decline(const RequestHandle& request) noexcept {
    const Found found = find(request);
    if (found.kept == nullptr) {
        return false;
    }
    declined_ = declined_ || found.kept->state != Guest::Taken::Later;  // if kept, its handler has run
    ++statistics_.requests_declined;
    end(found, Outcome::Declined, {});
    return true;
}

bool Server::expire(const RequestHandle& handle) noexcept {
    const Found found = find(handle);
    CAIRN_ASSERT(found.kept != nullptr);
    ++statistics_.requests_expired;
    end(found, Outcome::Expired, {});
    return true;
}

// Ends a request. A caller whose block is too small for the answer is notified.
void Server::end(const Found& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept {
    Answer answer;
    answer.sequence = request.kept->sequence;
    answer.outcome = message.size() > config_.shape.message_max() ? Outcome::TooLong : outcome;
    answer.payload = answer.outcome == Outcome::Answered ? message : std::span<const std::uint8_t>{};
    answers_.put(*request.session, answer);
    if (request.kept->state == Guest::Taken::Later && legacy_.watches(request.kept->type)) [[unlikely]] {
        note_executed(request.kept->type, now_ - request.kept->taken > config_.groups.slice);
    }
    pool_.release(request.kept->answer);
    pool_.release(request.kept->request);
    request.kept->state = Guest::Taken::Answered;
    --open_;
    sessions_.list(*request.session);
}

void Server::forget(Session& session) noexcept {
    for (Guest::Kept& kept : session.guest->kept) {
        if (kept.is_open()) {
            pool_.release(kept.answer);
            pool_.release(kept.request);
            --open_;
        }
        kept.state = Guest::Taken::None;
    }
    answers_.forget(session);
}

}  // namespace cairn::scalerpc
