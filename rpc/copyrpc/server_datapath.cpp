// Requests handed to their handlers, and answers.
#include "rpc/copyrpc/server.hpp"

#include <utility>

#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::copyrpc {

Server::Server(Endpoint& endpoint, const Types& types, Sessions& sessions, rpc::MsgPool& pool,
               rpc::BackgroundPool* background, Statistics& statistics)
    : endpoint_(endpoint),
      types_(types),
      sessions_(sessions),
      pool_(pool),
      statistics_(statistics),
      jobs_(*this, pool, background) {}

// The table grows within the room that expect() made: a session has no more requests than its promise pays for.
std::uint32_t Server::take_place() {
    if (free_.empty()) {
        requests_.emplace_back();
        return static_cast<std::uint32_t>(requests_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
}

// mutants: copyrpc-server-on-request
void Server::on_request(Session& session, const RingEnd::Taken& taken, Instant now) noexcept {
    const std::uint32_t place = take_place();
    Kept& kept = requests_[place];
    kept.call = taken.message.call;
    kept.session = session.id.value;
    kept.charge = taken.message.charge;
    kept.held = taken.held;
    kept.retained = false;
    const auto& type = types_[taken.message.type];
    if (!type.registered()) {
        ++statistics_.requests_without_handler;
        end(kept, Outcome::NoHandler, {});
        return;
    }
    ++statistics_.requests_handled;
    const RequestHandle handle{session.id, std::uint64_t{kept.generation} << 32U | place};
    if (type.background != nullptr) {
        const auto& more = taken.message.extension;
        const Instant deadline = more && more->left_us != 0 ? now + microseconds(more->left_us) : Instant::never();
        jobs_.add({handle, taken.message.type, taken.message.payload, deadline});
        return;
    }
    type.function(type.context, {endpoint_, handle, taken.message.type, taken.message.payload, now});
    if (Kept* const unanswered = find(handle); unanswered != nullptr && !unanswered->retained) {
        has_read(handle);
    }
}

bool Server::retain(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr) {
        return false;
    }
    kept->retained = true;
    return true;
}

// mutants: copyrpc-server-has-read
void Server::has_read(const RequestHandle& handle) noexcept {
    if (Kept* const kept = find(handle); kept != nullptr) {
        Session& session = *sessions_.find(handle.session);
        session.rings->release(std::exchange(kept->held, {}));
        sessions_.list(session);
    }
}

Server::Kept* Server::find(const RequestHandle& handle) noexcept {
    const auto place = static_cast<std::uint32_t>(handle.request_number);
    if (place >= requests_.size()) {
        return nullptr;
    }
    Kept& kept = requests_[place];
    return kept.charge != 0 && kept.generation == handle.request_number >> 32U ? &kept : nullptr;
}

std::span<std::uint8_t> Server::reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr || bytes > RingShape::kMostBytes) {
        return {};
    }
    if (kept->answer.capacity < bytes || !kept->answer.valid()) {
        pool_.release(kept->answer);
        kept->answer = pool_.allocate(bytes);
    }
    kept->answer.bytes = bytes;
    return kept->answer.valid() ? kept->answer.span() : std::span<std::uint8_t>{};
}

bool Server::respond(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr) {
        return false;
    }
    give(*kept, kept->answer.span());
    return true;
}

bool Server::answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr) {
        return false;
    }
    give(*kept, message);
    return true;
}

// A caller that has no room for the answer learns that.
// mutants: copyrpc-server-give
void Server::give(Kept& request, std::span<const std::uint8_t> message) noexcept {
    if (message.size() > Message::answer_max(request.charge)) {
        end(request, Outcome::TooLong, {});
    } else {
        end(request, Outcome::Answered, message);
    }
}

bool Server::refuse(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr) {
        return false;
    }
    ++statistics_.requests_refused;
    end(*kept, Outcome::Refused, {});
    return true;
}

bool Server::expire(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    CAIRN_ASSERT(kept != nullptr);
    ++statistics_.requests_expired;
    end(*kept, Outcome::Expired, {});
    return true;
}

// The message may be part of the request, which is the peer's again afterwards.
// mutants: copyrpc-server-end
void Server::end(Kept& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept {
    Session& session = *sessions_.find(SessionId{request.session});
    Message answer;
    answer.answer = true;
    answer.call = request.call;
    answer.outcome = outcome;
    answer.payload = message;
    session.rings->put_answer(answer, request.charge);
    session.rings->release(request.held);
    sessions_.list(session);
    free(request);
}

void Server::free(Kept& request) noexcept {
    pool_.release(request.answer);
    request.charge = 0;
    ++request.generation;
    free_.push_back(static_cast<std::uint32_t>(&request - requests_.data()));
}

// mutants: copyrpc-server-forget
void Server::forget(const Session& session) noexcept {
    for (Kept& request : requests_) {
        if (request.charge != 0 && request.session == session.id.value) {
            free(request);
        }
    }
}

}  // namespace cairn::copyrpc
