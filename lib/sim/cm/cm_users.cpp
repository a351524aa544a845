// The actions of the hosts' users, and checks of the order of their events.
#include "lib/sim/cm/cm_world.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kDrawnAgainMost = 1;
constexpr const char* kTwice = "a name given twice";

using Cookie = std::array<std::uint8_t, 8>;

Cookie bytes_of(std::uint64_t cookie) {
    Cookie bytes;
    const Be64 raw{cookie};
    std::memcpy(bytes.data(), &raw, bytes.size());
    return bytes;
}

std::uint64_t cookie_in(const cm::PrivateBytes& data) {
    return data.size >= sizeof(Be64) ? read_raw<Be64>(data.octets.data()).get() : 0;
}

}  // namespace

void CmWorld::connect(std::size_t from, std::size_t to) {
    Node& node = nodes_[from];
    const std::uint64_t cookie = ++last_cookie_;
    const Cookie said = bytes_of(cookie);
    cm::ConnectRequest request;
    request.route = {node.address, nodes_[to].address};
    request.service = random_.below(2) == 0 ? kCmService : kCmIpService;
    request.qpn = Qpn{node.next_qpn++};
    request.starting_psn = Psn{static_cast<std::uint32_t>(random_.next())};
    request.features = random_.below(2) == 0 ? 0 : wire::kFeatureSelective;
    request.private_data = said;
    const auto connected = node.manager->connect(request, now_);
    require(connected.ok(), "connect() refuses");
    if (!connected.ok()) {
        return;
    }
    require(node.take_name(connected.value()), kTwice);
    ++counters_.asked;
    const bool impatient = !healed_ && random_.chance(50'000);
    node.locals[connected.value()] = {true,
                                      cookie,
                                      to,
                                      request.qpn,
                                      request.starting_psn,
                                      Phase::Asked,
                                      impatient ? soon(seconds(1)) : Instant::never()};
    Deal& deal = deals_[cookie];
    deal.client = from;
    deal.client_life = node.life;
}

void CmWorld::resolve(std::size_t from, std::size_t to) {
    Node& node = nodes_[from];
    cm::ResolveRequest request;
    request.route = {node.address, nodes_[to].address};
    request.service = random_.below(2) == 0 ? kCmService : kCmIpService;
    const auto resolving = node.manager->datagrams().resolve(request, now_);
    require(resolving.ok(), "resolve() refuses");
    if (resolving.ok()) {
        node.questions[resolving.value()] = to;
    }
}

// Names are random numbers of 32 bits, so a free one may be drawn again. Of a thousand names one is drawn again in
// 8,600 lives, and two in a hundred million.
bool CmWorld::Node::take_name(cm::ConnectionId id) {
    drawn_again += gone.erase(id) != 0 ? 1U : 0U;
    return locals.count(id) == 0 && forged.count(id) == 0 && drawn_again <= kDrawnAgainMost;
}

void CmWorld::forget(Node& node, cm::ConnectionId id) {
    node.gone.insert(id);
    node.locals.erase(id);
    node.forged.erase(id);
}

// Takes the user's next step, which the phase and chance decide.
void CmWorld::act(Node& node, cm::ConnectionId id, Local& local) {
    local.act_at = Instant::never();
    const bool tired = local.phase == Phase::Asked || (!healed_ && random_.chance(60'000));
    if (local.phase == Phase::Over || local.phase == Phase::Leaving) {
        return;
    }
    if (tired) {
        end(node, local, true);
        require(node.manager->abandon(id, now_) == std::nullopt, "abandon() refuses");
        forget(node, id);
        return;
    }
    std::optional<cm::CallRefusal> refusal;
    if (local.phase == Phase::Requested || local.phase == Phase::Replied) {
        answer(node, id, local);
    } else if (local.phase == Phase::Up) {
        refusal = node.manager->disconnect(id, bytes_of(local.cookie), now_);
        local.phase = Phase::Leaving;
    } else if (local.phase == Phase::LeaveAsked) {
        refusal = node.manager->disconnect(id, bytes_of(local.cookie), now_);
        local.phase = Phase::Over;
    }
    require(refusal == std::nullopt, "a call that makes sense is refused");
}

void CmWorld::answer(Node& node, cm::ConnectionId id, Local& local) {
    Deal& deal = deals_.at(local.cookie);
    if (!healed_ && random_.chance(120'000)) {
        deal.refused = true;
        end(node, local, true);
        require(node.manager->reject(id, {}, now_) == std::nullopt, "reject() refuses");
        if (local.active) {
            local.phase = Phase::Over;
        } else {
            forget(node, id);
        }
        return;
    }
    const Cookie said = bytes_of(local.cookie);
    if (local.active) {
        deal.ready = true;
        local.phase = Phase::Up;
        local.act_at = soon(seconds(3));
        require(node.manager->ready(id, said, now_) == std::nullopt, "ready() refuses");
        return;
    }
    cm::AcceptParameters accepted;
    accepted.qpn = local.qpn = Qpn{node.next_qpn++};
    accepted.starting_psn = local.psn = Psn{static_cast<std::uint32_t>(random_.next())};
    accepted.private_data = said;
    deal.accepted = true;
    deal.accepted_qpn = accepted.qpn;
    deal.accepted_psn = accepted.starting_psn;
    local.phase = Phase::Accepted;
    require(node.manager->accept(id, accepted, now_) == std::nullopt, "accept() refuses");
}

// Ends the connection for this end.
void CmWorld::end(Node& node, Local& local, bool gave_up) {
    Deal& deal = deals_.at(local.cookie);
    if (!local.active && deal.server_life == node.life) {
        deal.open_requests -= local.phase == Phase::Requested || local.phase == Phase::Accepted ? 1U : 0U;
        deal.server_gave_up |= gave_up;
    }
}

CmWorld::Local* CmWorld::expect(Node& node, cm::ConnectionId id, std::initializer_list<Phase> phases,
                                const char* event) {
    const auto found = node.locals.find(id);
    require(found != node.locals.end(), std::string(event) + " of a connection that is not there");
    if (found == node.locals.end()) {
        return nullptr;
    }
    const bool fits = std::find(phases.begin(), phases.end(), found->second.phase) != phases.end();
    require(fits, std::string(event) + " in phase " + std::to_string(static_cast<int>(found->second.phase)));
    return fits ? &found->second : nullptr;
}

void CmWorld::poll_all(std::size_t index) {
    Node& node = nodes_[index];
    while (const std::optional<cm::Event> event = node.manager->poll_event()) {
        note(event->index());
        std::visit(
            [&]<class Kind>(const Kind& kind) {
                if constexpr (std::is_same_v<decltype(kind.id), cm::ConnectionId>) {
                    if (node.forged.count(kind.id) != 0) {
                        require(!std::is_same_v<Kind, cm::Requested>, kTwice);
                        require(!std::is_same_v<Kind, cm::Established>, "established with nobody");
                        if (std::is_same_v<Kind, cm::Released>) {
                            forget(node, kind.id);
                        }
                        return;
                    }
                }
                on_event(node, kind);
            },
            *event);
    }
}

void CmWorld::accept_forged(Node& node, cm::ConnectionId id) {
    require(node.take_name(id), kTwice);
    cm::AcceptParameters accepted;
    accepted.qpn = Qpn{0x900000};
    require(node.manager->accept(id, accepted, now_) == std::nullopt, "accept() refuses");
    node.forged.insert(id);
}

void CmWorld::on_event(Node& node, const cm::Requested& event) {
    if (event.private_data.octets[0] == kForged) {
        accept_forged(node, event.id);
        return;
    }
    const std::uint64_t cookie = cookie_in(event.private_data);
    const auto found = deals_.find(cookie);
    require(found != deals_.end(), "a request that nobody made");
    require(node.take_name(event.id), kTwice);
    require(event.ip.has_value() == (event.service == kCmIpService), "the wrong ends by IP");
    if (broken_) {
        return;
    }
    Deal& deal = found->second;
    if (deal.server_life != node.life) {  // an earlier life of the server may have been asked
        deal.server_life = node.life;
        deal.open_requests = 0;
        deal.settled = false;
        deal.restarted |= deal.accepted;
    }
    require(deal.open_requests == 0, "one request asked for twice at a time");
    require(!deal.settled, "a request that was settled comes again");
    ++deal.open_requests;
    const Duration patience = faults_.slow_users ? seconds(3) : milliseconds(100);
    node.locals[event.id] = {false, cookie, deal.client, {}, {}, Phase::Requested, soon(patience)};
}

void CmWorld::on_event(Node& node, const cm::Replied& event) {
    Local* const local = expect(node, event.id, {Phase::Asked}, "Replied");
    if (local == nullptr) {
        return;
    }
    const Deal& deal = deals_.at(local->cookie);
    require(cookie_in(event.private_data) == local->cookie, "a reply to another request");
    require(deal.accepted, "a reply that nobody gave");
    require(deal.restarted || (event.qp.remote_qpn == deal.accepted_qpn && event.qp.send_psn == deal.accepted_psn),
            "another queue pair than the one that accepted");
    local->phase = Phase::Replied;
    local->act_at = soon(faults_.slow_users ? seconds(3) : milliseconds(100));
}

void CmWorld::on_event(Node& node, const cm::Established& event) {
    Local* const local = expect(node, event.id, {Phase::Accepted}, "Established");
    if (local == nullptr) {
        return;
    }
    Deal& deal = deals_.at(local->cookie);
    require(deal.ready && cookie_in(event.private_data) == local->cookie, "established by nobody");
    end(node, *local, false);
    deal.settled = true;
    deal.server_saw_it = true;
    ++counters_.established;
    local->phase = Phase::Up;
    local->act_at = soon(seconds(3));
}

void CmWorld::on_event(Node& node, const cm::Rejected& event) {
    Local* const local =
        expect(node, event.id, {Phase::Asked, Phase::Requested, Phase::Replied, Phase::Accepted}, "Rejected");
    if (local == nullptr) {
        return;
    }
    ++counters_.rejected;
    const Deal& deal = deals_.at(local->cookie);
    const bool no_fault_of_users = event.reason != wire::RejectReason::Consumer;
    require(no_fault_of_users || deal.refused || deal.server_gave_up || deal.restarted || !local->active,
            "a refusal that nobody uttered");
    end(node, *local, true);
    local->phase = Phase::Over;
}

void CmWorld::on_event(Node& node, const cm::Unreachable& event) {
    Local* const local = expect(node, event.id, {Phase::Asked, Phase::Accepted}, "Unreachable");
    if (local != nullptr) {
        ++counters_.unreachable;
        end(node, *local, true);
        local->phase = Phase::Over;
    }
}

void CmWorld::on_event(Node& node, const cm::DisconnectRequested& event) {
    Local* const local = expect(node, event.id, {Phase::Accepted, Phase::Up}, "DisconnectRequested");
    if (local == nullptr) {
        return;
    }
    Deal& deal = deals_.at(local->cookie);
    end(node, *local, false);
    deal.server_saw_it |= !local->active;
    deal.settled |= !local->active;
    local->phase = Phase::LeaveAsked;
    local->act_at = soon(faults_.slow_users ? seconds(3) : milliseconds(100));
}

void CmWorld::on_event(Node& node, const cm::Disconnected& event) {
    Local* const local = expect(node, event.id, {Phase::Up, Phase::Leaving}, "Disconnected");
    if (local != nullptr) {
        local->phase = Phase::Over;
    }
}

void CmWorld::on_event(Node& node, const cm::Released& event) {
    if (expect(node, event.id, {Phase::Over}, "Released") != nullptr) {
        forget(node, event.id);
    }
}

void CmWorld::on_event(Node& node, const cm::DatagramRequested& event) {
    const auto index = static_cast<std::size_t>(&node - nodes_.data());
    const Qpn serving{static_cast<std::uint32_t>(0x800000 + index)};
    const Qkey key{static_cast<std::uint32_t>(0x1000 + index)};
    require(event.service == kCmIpService && event.ip.has_value(), "a question to another service");
    const std::optional<cm::CallRefusal> refusal =
        node.manager->datagrams().answer(event.id, wire::SidrStatus::Valid, {serving, key, {}}, now_);
    require(refusal == std::nullopt, "answer() refuses");
}

void CmWorld::on_event(Node& node, const cm::Resolved& event) {
    const auto found = node.questions.find(event.id);
    require(found != node.questions.end(), "an answer to no question");
    if (found == node.questions.end()) {
        return;
    }
    if (event.status) {
        ++counters_.resolved;
        require(*event.status == wire::SidrStatus::Valid, "a service that is there is denied");
        require(event.qpn.value == 0x800000 + found->second && event.qkey.value == 0x1000 + found->second,
                "the queue pair of another host");
    }
    node.questions.erase(found);
}

}  // namespace cairn::sim
