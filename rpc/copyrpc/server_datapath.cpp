// Hands requests to their handlers, and sends answers.
#include "rpc/copyrpc/server.hpp"

#include <utility>

#include "rpc/common/time_left.hpp"
#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::copyrpc {

Server::Server(Endpoint& endpoint, const EndpointConfig& config, const Types& types, verbs::Device& device,
               Sessions& sessions, rpc::MsgPool& pool, Statistics& statistics)
    : endpoint_(endpoint),
      config_(config),
      types_(types),
      sessions_(sessions),
      pool_(pool),
      statistics_(statistics),
      jobs_(*this, pool, config.background, statistics.requests_handled),
      transfers_(*this, device, pool, config.receives, statistics),
      late_(pool, statistics) {}

// Takes a place. The table grows within the room that expect() made: a session's promise limits its requests.
std::uint32_t Server::take_place() {
    ++kept_;
    if (free_ == rpc::kNone) {
        requests_.emplace_back();
        return static_cast<std::uint32_t>(requests_.size() - 1);
    }
    return std::exchange(free_, requests_[free_].next);
}

[[gnu::always_inline]] inline void Server::free(Kept& request) noexcept {
    if (request.answer.valid()) [[unlikely]] {
        pool_.release(request.answer);
    }
    if (request.fetched.valid()) [[unlikely]] {
        transfers_.release(*request.session, request.fetched);
    }
    const auto place = static_cast<std::uint32_t>(&request - requests_.data());
    request.session->kept.remove(requests_, place);
    request.charge = 0;
    ++request.generation;
    request.next = std::exchange(free_, place);
    --kept_;
}

[[gnu::always_inline]] inline void Server::take(Session& session, const RingEnd::Taken& taken, Instant came,
                                                Instant now) noexcept {
    const Message& message = taken.message;
    const std::uint32_t place = take_place();
    Kept& kept = requests_[place];
    kept.call = message.call;
    kept.session = &session;
    session.kept.add(requests_, place);
    kept.charge = message.charge;
    kept.held = taken.held;
    kept.kept = kept.retained = kept.lacks_room = false;
    kept.room = message.room.value_or(Place{});
    if (!types_[message.type].registered()) {
        ++statistics_.requests_without_handler;
        end(kept, Outcome::NoHandler, {});
        return;
    }
    const RequestHandle handle{session.id, std::uint64_t{kept.generation} << 32U | place};
    const auto& more = message.extension;
    const Instant deadline = more ? rpc::deadline_of(more->left_us, came) : Instant::never();
    const rpc::JobRequest work{handle, message.type, message.payload, deadline, more ? more->trace : 0};
    if (message.elsewhere || (message.room && transfers_.puts_off(session))) [[unlikely]] {
        Fetch fetch;
        fetch.work = work;
        if (message.elsewhere) {
            session.rings->release(std::exchange(kept.held, {}));
            fetch.place = *message.elsewhere;
        }
        transfers_.fetch(session, std::move(fetch));
        return;
    }
    if (now >= deadline) [[unlikely]] {
        (void)expire(handle);
    } else {
        execute(work, now);
    }
}

std::optional<Breach> Server::on_request(Session& session, const RingEnd::Taken& taken, Instant now) noexcept {
    const Message& message = taken.message;
    if ((message.elsewhere && !message.elsewhere->is_sound(config_.message_bytes_max)) ||
        (message.room && !message.room->is_sound(rpc::kMaxMessageBytes))) [[unlikely]] {
        return Breach::BadPlace;
    }
    if (session.late != nullptr && (!session.late->requests.empty() || late_.holds_back(session, message.charge)))
        [[unlikely]] {
        session.late->requests.push_back({taken, now});
        ++statistics_.requests_held_back;
    } else {
        take(session, taken, now, now);
    }
    return std::nullopt;
}

void Server::on_fetched(Fetch& fetched, Instant now) noexcept {
    rpc::JobRequest& work = fetched.work;
    Kept* const kept = find(work.handle);
    CAIRN_ASSERT(kept != nullptr);
    kept->fetched = std::exchange(fetched.memory, {});
    work.payload = kept->fetched.span();
    if (now >= work.deadline) {
        (void)expire(work.handle);
    } else {
        execute(work, now);
    }
}

void Server::execute(const rpc::JobRequest& work, Instant now) noexcept {
    const auto& type = types_[work.type];
    const RequestHandle& handle = work.handle;
    if (type.background != nullptr) {
        const bool taken = jobs_.add(work);
        CAIRN_ASSERT(taken);  // a request can always wait
        return;
    }
    declined_ = false;
    type.function(type.context, {endpoint_, *this, handle, work.type, work.payload, now, work.trace});
    statistics_.requests_handled += declined_ ? 0 : 1;
    const Kept* const unanswered = find(handle);
    if (unanswered == nullptr) [[likely]] {
        return;
    }
    if (!unanswered->kept) {
        (void)drop(handle);
    } else if (!unanswered->retained) {
        has_read(handle);
    }
}

void Server::keep(const RequestHandle& request) noexcept {
    if (Kept* const kept = find(request); kept != nullptr) {
        kept->kept = true;
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

void Server::has_read(const RequestHandle& handle) noexcept {
    if (Kept* const kept = find(handle); kept != nullptr) {
        Session& session = *kept->session;
        session.rings->release(std::exchange(kept->held, {}));
        transfers_.release(session, kept->fetched);
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
    if (kept == nullptr) {
        return {};
    }
    const std::span<std::uint8_t> room = pool_.resize(kept->answer, bytes);
    kept->lacks_room = room.data() == nullptr;
    return room;
}

// Sends the reserved answer. If reserve() found no room, there is no answer.
bool Server::respond(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    if (kept == nullptr) {
        return false;
    }
    if (kept->lacks_room) [[unlikely]] {
        ++statistics_.answers_given_up;
        end(*kept, Outcome::Refused, {});
    } else {
        give(*kept, kept->answer.span());
    }
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

// Sends an answer. A caller without room for it is notified.
void Server::give(Kept& request, std::span<const std::uint8_t> message) noexcept {
    if (message.size() <= Message::answer_max(request.charge)) [[likely]] {
        end(request, Outcome::Answered, message);
    } else if (message.size() <= request.room.bytes) {
        give_long(request, message);
    } else {
        end(request, Outcome::TooLong, {});
    }
}

// WRITEs a long answer. Its memory stays unchanged until that is done.
void Server::give_long(Kept& request, std::span<const std::uint8_t> message) noexcept {
    const bool is_reserved = request.answer.valid() && message.data() == request.answer.data;
    Writing writing;
    writing.memory =
        is_reserved ? std::exchange(request.answer, {}) : pool_.allocate(static_cast<std::uint32_t>(message.size()));
    if (!writing.memory.valid()) {
        ++statistics_.answers_given_up;
        end(request, Outcome::Refused, {});
        return;
    }
    if (!is_reserved) {
        std::memcpy(writing.memory.data, message.data(), message.size());
    }
    writing.memory.bytes = static_cast<std::uint32_t>(message.size());
    writing.place = request.room;
    writing.call = request.call;
    writing.charge = request.charge;
    Session& session = *request.session;
    transfers_.write(session, std::move(writing));
    session.rings->release(request.held);
    sessions_.list(session);
    free(request);
}

bool Server::drop(const RequestHandle& request) noexcept {
    Kept* const kept = find(request);
    if (kept == nullptr) {
        return false;
    }
    ++statistics_.requests_refused;
    end(*kept, Outcome::Refused, {});
    return true;
}

bool Server::decline(const RequestHandle& request) noexcept {
    Kept* const kept = find(request);
    if (kept == nullptr) {
        return false;
    }
    declined_ = declined_ || !kept->kept;  // if the request is kept, its handler has run already
    ++statistics_.requests_declined;
    end(*kept, Outcome::Declined, {});
    return true;
}

bool Server::expire(const RequestHandle& handle) noexcept {
    Kept* const kept = find(handle);
    CAIRN_ASSERT(kept != nullptr);
    ++statistics_.requests_expired;
    end(*kept, Outcome::Expired, {});
    return true;
}

// Ends a request. `message` may be part of the request, whose blocks are the peer's again afterwards.
void Server::end(Kept& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept {
    Session& session = *request.session;
    Message answer;
    answer.answer = true;
    answer.call = request.call;
    answer.outcome = outcome;
    answer.payload = message;
    put(session, answer, request.charge);
    session.rings->release(request.held);
    sessions_.list(session);
    free(request);
}

void Server::put(Session& session, const Message& answer, std::uint16_t charge) noexcept {
    if (!session.has_late() && session.rings->fits_answer(answer)) [[likely]] {
        session.rings->put_answer(answer, charge);
    } else {
        late_.put_off(session, answer, charge);
    }
}

bool Server::serve_late(Session& session, Instant now) noexcept {
    const bool all = late_.serve(session);
    while (session.is_open() && !session.late->requests.empty()) {
        const HeldBack oldest = session.late->requests.front();
        if (late_.holds_back(session, oldest.taken.message.charge)) {
            break;
        }
        session.late->requests.pop_front();
        take(session, oldest.taken, oldest.came, now);
    }
    return all;
}

void Server::forget(Session& session) noexcept {
    while (!session.kept.empty()) {
        free(requests_[session.kept.first]);
    }
    late_.forget(session);
    transfers_.forget(session);
}

}  // namespace cairn::copyrpc
