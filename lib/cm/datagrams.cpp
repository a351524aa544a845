#include "lib/cm/datagrams.hpp"

#include "lib/cm/messages.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

namespace {

wire::SidrRep make_rep(const wire::SidrReq& req, wire::SidrStatus status) noexcept {
    wire::SidrRep rep;
    rep.request_id = req.request_id;
    rep.status = status;
    rep.service_id = req.service_id;
    return rep;
}

bool fits(const DatagramService& service) noexcept {
    return service.private_data.size() <= wire::SidrRep{}.private_data.size();
}

}  // namespace

Datagrams::Datagrams(const Config& config, SecretNumbers& numbers, Outbox& outbox, EventQueue& events,
                     telemetry::CounterSet<Counter>& counters)
    : config_(config), numbers_(numbers), outbox_(outbox), events_(events), counters_(counters) {}

std::optional<CallRefusal> Datagrams::listen(wire::ServiceId service, const net::IpAddress& local,
                                             const std::optional<DatagramService>& standing, User* user) {
    Listener listener;
    listener.user = user;
    if (standing) {
        if (!fits(*standing)) {
            return CallRefusal::PrivateDataTooLong;
        }
        listener = {true, standing->qpn, standing->qkey, PrivateBytes::of(standing->private_data), user};
    }
    return listeners_.try_add(service, local, listener) ? std::nullopt : std::optional(CallRefusal::ServiceTaken);
}

std::optional<CallRefusal> Datagrams::unlisten(wire::ServiceId service, const net::IpAddress& local) {
    return listeners_.remove(service, local) ? std::nullopt : std::optional(CallRefusal::UnknownService);
}

DatagramId Datagrams::next_id() {
    DatagramId id{};
    do {
        id = DatagramId{config_.names.name(numbers_.next())};
    } while (queries_.count(id) != 0 || asked_by_id_.count(id) != 0);
    return id;
}

Parsed<DatagramId, CallRefusal> Datagrams::resolve(const ResolveRequest& request, Instant now, User* user) {
    if (request.private_data.size() > private_room(request)) {
        return CallRefusal::PrivateDataTooLong;
    }
    if (const std::optional<CallRefusal> refusal = judge_route(request.route)) {
        return *refusal;
    }
    if (queries_.size() >= config_.max_datagram_requests) {
        return CallRefusal::NoRoom;
    }
    const DatagramId id = next_id();
    Query& query = queries_[id];
    query.route = request.route;
    query.user = user;
    query.service = request.service;
    query.message = wire::CmMad{numbers_.next(), make_sidr_req(request, id)}.bytes();
    query.retries_left = config_.max_retries.value;
    outbox_.push(query.route, query.message);
    query_due_.set(id, query.deadline, now + response_wait(config_, config_.response_timeout));
    return id;
}

std::optional<CallRefusal> Datagrams::cancel(DatagramId id) {
    const auto found = queries_.find(id);
    if (found == queries_.end()) {
        return CallRefusal::UnknownConnection;
    }
    query_due_.set(id, found->second.deadline, Instant::never());
    queries_.erase(found);
    return std::nullopt;
}

void Datagrams::forget(const User& user) {
    listeners_.remove_if([&user](const Listener& listener) { return listener.user == &user; });
    std::vector<DatagramId> asked;
    for (const auto& [id, query] : queries_) {
        if (query.user == &user) {
            asked.push_back(id);
        }
    }
    for (const DatagramId id : asked) {
        (void)cancel(id);
    }
    for (auto each = asked_.begin(); each != asked_.end();) {
        const auto one = each++;
        if (one->second.user == &user && !one->second.answered) {
            forget(one);  // a copy of the question goes to the next listener
        }
    }
    events_.forget_datagrams(user);
}

void Datagrams::on_reply(const Route& route, const wire::SidrRep& rep) {
    const auto found = queries_.find(rep.request_id);
    if (found == queries_.end()) {
        counters_.count(Counter::UnknownConnection);
        return;
    }
    const Query& query = found->second;
    if (query.route != route) {
        counters_.count(Counter::WrongPeer);
        return;
    }
    if (rep.status == wire::SidrStatus::Valid && rep.service_id != query.service) {
        counters_.count(Counter::Unexpected);
        return;
    }
    events_.push(query.user,
                 Resolved{rep.request_id, rep.status, rep.qpn, rep.qkey, PrivateBytes::of(rep.private_data)});
    (void)cancel(rep.request_id);
}

bool Datagrams::take_duplicate(const AskedKey& key, std::uint64_t transaction, const wire::SidrReq& req) {
    const auto found = asked_.find(key);
    if (found == asked_.end()) {
        return false;
    }
    const Asked& asked = found->second;
    const bool same = asked.service == req.service_id && asked.transaction == transaction;
    if (!same && asked.answered) {  // the peer uses the number again in another life
        forget(found);
        return false;
    }
    counters_.count(Counter::Duplicate);
    if (same && asked.answered) {
        outbox_.push(asked.route, asked.answer);
    }
    return true;
}

void Datagrams::on_request(const Route& route, std::uint64_t transaction, const wire::SidrReq& req) {
    const AskedKey key{route.remote, req.request_id};
    if (take_duplicate(key, transaction, req)) {
        return;
    }
    if (!names_ends_of(req.service_id, req.private_data, route)) {
        counters_.count(Counter::BadRequest);
        outbox_.push(route, transaction, make_rep(req, wire::SidrStatus::Rejected));
        return;
    }
    const Listener* const listener = listeners_.find(req.service_id, route.local);
    if (listener == nullptr) {
        counters_.count(Counter::NoListener);
        outbox_.push(route, transaction, make_rep(req, wire::SidrStatus::UnsupportedService));
        return;
    }
    if (listener->has_standing) {
        wire::SidrRep rep = make_rep(req, wire::SidrStatus::Valid);
        rep.qpn = listener->qpn;
        rep.qkey = listener->qkey;
        std::copy_n(listener->private_data.octets.begin(), listener->private_data.size, rep.private_data.begin());
        outbox_.push(route, transaction, rep);
        return;
    }
    if (!make_room(route.remote)) {
        counters_.count(Counter::BacklogFull);
        return;
    }
    const DatagramId id = next_id();
    asked_by_id_.emplace(id, key);
    Asked& asked = asked_.emplace(key, Asked{id, route, transaction, req.service_id}).first->second;
    asked.ticket = asked_shares_.add(route.remote, id);
    asked.user = listener->user;
    const ReceivedData data = read_private_data(req);
    events_.push(listener->user, DatagramRequested{id, req.service_id, route, req.pkey, data.ip, data.rest});
}

bool Datagrams::make_room(const net::IpAddress& peer) {
    if (asked_.size() < config_.max_datagram_requests) {
        return true;
    }
    std::optional<DatagramId> gives_way = asked_shares_.who_gives_way_to(peer);
    if (!gives_way) {
        gives_way = forget_due_.first();
    }
    if (gives_way) {
        counters_.count(Counter::GaveWay);
        forget(asked_.find(asked_by_id_.at(*gives_way)));
    }
    return gives_way.has_value();
}

void Datagrams::forget(std::map<AskedKey, Asked>::iterator asked) {
    forget_due_.set(asked->second.id, asked->second.deadline, Instant::never());
    asked_shares_.remove(asked->first.first, asked->second.ticket);
    asked_by_id_.erase(asked->second.id);
    asked_.erase(asked);
}

std::optional<CallRefusal> Datagrams::answer(DatagramId id, wire::SidrStatus status, const DatagramService& service,
                                             Instant now) {
    const auto found = asked_by_id_.find(id);
    if (found == asked_by_id_.end()) {
        return CallRefusal::UnknownConnection;
    }
    Asked& asked = asked_.at(found->second);
    if (asked.answered) {
        return CallRefusal::WrongState;
    }
    if (!fits(service)) {
        return CallRefusal::PrivateDataTooLong;
    }
    wire::SidrRep rep;
    rep.request_id = found->second.second;
    rep.status = status;
    rep.qpn = service.qpn;
    rep.service_id = asked.service;
    rep.qkey = service.qkey;
    std::copy(service.private_data.begin(), service.private_data.end(), rep.private_data.begin());
    asked.answer = wire::CmMad{asked.transaction, rep}.bytes();
    asked.answered = true;
    outbox_.push(asked.route, asked.answer);
    forget_due_.set(id, asked.deadline, now + kDatagramAnswersKept);
    return std::nullopt;
}

void Datagrams::ignore(DatagramId id) {
    const auto found = asked_by_id_.find(id);
    if (found == asked_by_id_.end()) {
        return;
    }
    const auto asked = asked_.find(found->second);
    if (!asked->second.answered) {
        counters_.count(Counter::BacklogFull);
        forget(asked);
    }
}

void Datagrams::on_timeout(Instant now) {
    while (const std::optional<DatagramId> id = forget_due_.find_due(now)) {
        forget(asked_.find(asked_by_id_.at(*id)));
    }
    while (outbox_.has_room()) {
        const std::optional<DatagramId> id = query_due_.find_due(now);
        if (!id) {
            return;
        }
        on_query_due(*id, queries_.at(*id), now);
    }
}

void Datagrams::on_query_due(DatagramId id, Query& query, Instant now) {
    if (query.retries_left == 0) {
        counters_.count(Counter::GivenUp);
        events_.push(query.user, Resolved{id, std::nullopt});
        (void)cancel(id);
        return;
    }
    --query.retries_left;
    counters_.count(Counter::Retransmitted);
    outbox_.push(query.route, query.message);
    query_due_.set(id, query.deadline, now + response_wait(config_, config_.response_timeout));
}

}  // namespace cairn::cm
