#include "lib/broker/account.hpp"

namespace cairn::broker {

namespace {

constexpr Topic about_managing() noexcept {
    return {Topic::Kind::Manager, 0};
}
constexpr Topic about(wire::ServiceId service) noexcept {
    return {Topic::Kind::Service, service.value};
}
constexpr Topic about_connection(std::uint32_t name) noexcept {
    return {Topic::Kind::Connection, name};
}
constexpr Topic about_question(std::uint32_t ask) noexcept {
    return {Topic::Kind::Question, ask};
}

// Notes that the broker got the fact, or the order to forget it.
template <class Facts>
void on_told(Facts& facts, typename Facts::iterator told) {
    if (told->second.value) {
        told->second.is_known = true;
    } else {
        facts.erase(told);
    }
}

// Forgets which facts the broker knew, as it has ended.
template <class Facts>
void forget_what_is_known(Facts& facts) {
    std::erase_if(facts, [](const auto& each) { return !each.second.value; });
    for (auto& [name, fact] : facts) {
        fact.is_known = false;
    }
}

}  // namespace

void Backlog::add(const Topic& topic) {
    if (places_.try_emplace(topic, last_place_ + 1).second) {
        in_order_.emplace(++last_place_, topic);
    }
}

void Backlog::remove(const Topic& topic) {
    if (const auto found = places_.find(topic); found != places_.end()) {
        in_order_.erase(found->second);
        places_.erase(found);
    }
}

void Backlog::clear() {
    places_.clear();
    in_order_.clear();
}

void Account::manage() {
    manages_ = true;
    backlog_.add(about_managing());
}

void Account::leave(const Will& will) {
    connections_[will.name].value = will;
    backlog_.add(about_connection(will.name));
}

// Withdraws a connection. If the broker never knew it, that needs no message.
void Account::revoke(std::uint32_t name) {
    const auto found = connections_.find(name);
    if (found == connections_.end()) {
        return;
    }
    found->second.value.reset();
    if (found->second.is_known) {
        backlog_.add(about_connection(name));
    } else {
        backlog_.remove(about_connection(name));
        connections_.erase(found);
    }
}

void Account::release(wire::ServiceId service) {
    const auto found = services_.find(service);
    if (found == services_.end()) {
        return;
    }
    found->second.value.reset();
    if (found->second.is_known) {
        settle(service);
    } else {
        backlog_.remove(about(service));
        services_.erase(found);
    }
}

// Makes sure that the broker gets the present state of the service, which it may have otherwise. If a question about it
// is open, the question comes first, and its answer may settle the state.
void Account::settle(wire::ServiceId service) {
    for (auto& [ask, question] : questions_) {
        if (question.claim.service == service && !question.granted) {
            question.in_doubt = true;
            return;
        }
    }
    services_[service].is_known = true;
    backlog_.add(about(service));
}

std::uint32_t Account::ask(wire::ServiceId service, bool shares) {
    const std::uint32_t ask = ++last_ask_ != 0 ? last_ask_ : ++last_ask_;
    questions_[ask].claim = {ask, service, shares};
    backlog_.add(about_question(ask));
    return ask;
}

void Account::hear(const Claimed& said) {
    if (const auto found = questions_.find(said.ask); found != questions_.end()) {
        found->second.granted = said.granted;
        if (said.granted) {
            services_[said.service] = {found->second.claim.shares, true};
        }
    } else if (said.granted) {
        settle(said.service);
    }
}

std::optional<bool> Account::close(std::uint32_t ask) {
    const auto found = questions_.find(ask);
    const Question closed = found->second;
    questions_.erase(found);
    backlog_.remove(about_question(ask));
    if (closed.in_doubt && !closed.granted.value_or(false)) {
        settle(closed.claim.service);
    }
    return closed.granted;
}

// Services that the program has are sent before questions for others.
void Account::begin() {
    backlog_.clear();
    forget_what_is_known(services_);
    forget_what_is_known(connections_);
    if (manages_) {
        backlog_.add(about_managing());
    }
    for (const auto& [service, fact] : services_) {
        backlog_.add(about(service));
    }
    for (const auto& [name, fact] : connections_) {
        backlog_.add(about_connection(name));
    }
    for (auto& [ask, question] : questions_) {
        question.in_doubt = false;
        if (!question.granted) {
            backlog_.add(about_question(ask));
        }
    }
}

std::optional<Message> Account::next() const {
    const Topic* const topic = backlog_.first();
    if (topic == nullptr) {
        return std::nullopt;
    }
    switch (topic->kind) {
        case Topic::Kind::Manager:
            return Manage{};
        case Topic::Kind::Service: {
            const wire::ServiceId service{topic->name};
            const std::optional<bool> shares = services_.at(service).value;
            return shares ? Message(Claim{0, service, *shares}) : Message(Release{service});
        }
        case Topic::Kind::Connection: {
            const auto name = static_cast<std::uint32_t>(topic->name);
            const std::optional<Will>& will = connections_.at(name).value;
            return will ? Message(*will) : Message(Revoke{name});
        }
        case Topic::Kind::Question:
            return questions_.at(static_cast<std::uint32_t>(topic->name)).claim;
    }
    return std::nullopt;
}

void Account::on_said() {
    const Topic said = *backlog_.first();
    backlog_.remove(said);
    if (said.kind == Topic::Kind::Service) {
        on_told(services_, services_.find(wire::ServiceId{said.name}));
    } else if (said.kind == Topic::Kind::Connection) {
        on_told(connections_, connections_.find(static_cast<std::uint32_t>(said.name)));
    }
}

}  // namespace cairn::broker
