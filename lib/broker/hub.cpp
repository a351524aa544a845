#include "lib/broker/hub.hpp"

#include <algorithm>
#include <utility>

namespace cairn::broker {

void Hub::on_connected(ClientId id, Instant now) {
    if (clients_.size() - programs_.size() >= config_.strangers) {
        counters_.count(Counter::Crowded);
        hands_.end(id);
        return;
    }
    Client& client = clients_[id];
    client.due = now + config_.silence;
}

void Hub::on_message(ClientId id, const std::optional<Message>& said, Instant now) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) {
        return;
    }
    if (!said) {
        end_garbage(id, now);
        return;
    }
    std::visit([&](const auto& message) { hear(id, found->second, message, now); }, *said);
}

void Hub::on_lost(ClientId id, Instant now) {
    if (const auto found = clients_.find(id); found != clients_.end()) {
        forget(found, now);
    }
}

void Hub::on_timeout(Instant now) {
    for (auto each = clients_.begin(); each != clients_.end();) {
        const ClientId id = each->first;
        Client& client = each->second;
        ++each;  // the client may go
        if (client.state == Client::State::Member || now < client.due) {
            continue;
        }
        if (client.state == Client::State::Waiting) {
            lend(id, client, now);
        } else {
            counters_.count(Counter::Silent);
            end(id, now);
        }
    }
    programs_.on_timeout(now);
    idle_since_ = programs_.idle() ? idle_since_ : now;
}

bool Hub::is_unused() const noexcept {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](const auto& each) { return each.second.state == Client::State::Silent; });
}

Instant Hub::next_deadline() const noexcept {
    Instant due = is_idle() ? idle_since_ + config_.idle : programs_.next_deadline();
    for (const auto& [id, client] : clients_) {
        if (client.state != Client::State::Member) {
            due = std::min(due, client.due);
        }
    }
    return due;
}

void Hub::hear(ClientId id, Client& client, const Join&, Instant now) {
    if (client.state != Client::State::Silent) {
        end_garbage(id, now);
        return;
    }
    client.state = Client::State::Waiting;
    client.patient_until = now + config_.patience;
    lend(id, client, now);
}

void Hub::hear(ClientId id, Client& client, const Rejoin& said, Instant now) {
    if (client.state != Client::State::Silent) {
        end_garbage(id, now);
        return;
    }
    client.state = Client::State::Bringing;
    client.slot = said.slot;
    client.owed = said.sockets;
}

void Hub::hear(ClientId id, Client& client, const Look&, Instant now) {
    if (client.state != Client::State::Silent) {
        end_garbage(id, now);
        return;
    }
    for (std::size_t i = 0; i < telemetry::kCounters<Counter>; ++i) {
        const auto counter = static_cast<Counter>(i);
        if (const std::uint64_t value = counters_.of(counter); value != 0) {
            (void)hands_.send(id, Counted{counter, value});
        }
    }
    (void)hands_.send(id, Look{});
    end(id, now);
}

void Hub::hear(ClientId id, Client& client, const Sockets& said, Instant now) {
    if (client.state != Client::State::Bringing || said.count > client.owed) {
        end_garbage(id, now);
        return;
    }
    client.owed = static_cast<std::uint16_t>(client.owed - said.count);
    if (client.owed == 0) {
        rejoin(id, client, now);
    }
}

// Takes in a client of an earlier broker, of whose state only its messages are left. Slots of that time are not lent
// again, unless their programs come and go: this broker cannot know which of them are in use.
void Hub::rejoin(ClientId id, Client& client, Instant now) {
    const std::uint16_t had = slots_.sockets();
    const std::optional<std::uint16_t> has = hands_.adopt(id);
    if (!has) {
        end_garbage(id, now);
        return;
    }
    slots_.grow(std::max(had, *has), Slots::State::Unknown);
    hidden_until_ = now;
    if (had == 0) {
        programs_.expect_old_claims(now + config_.patience);
    }
    if (!slots_.claim(client.slot)) {
        end_garbage(id, now);
        return;
    }
    client.state = Client::State::Member;
    programs_.add(client.slot, id);
    counters_.count(Counter::Rejoined);
    if (!hands_.send(id, Lent{client.slot, 0})) {
        end(id, now);
    }
}

void Hub::lend(ClientId id, Client& client, Instant now) {
    const Lending outcome = try_lend(id, client, now);
    switch (outcome) {
        case Lending::Done:
            return;
        case Lending::Full:
            return refuse(id, Refusal::Full, now);
        case Lending::NoResources:
            return refuse(id, Refusal::NoResources, now);
        case Lending::PortTaken:
        case Lending::NoAnswer:
            if (now >= client.patient_until) {
                return refuse(id, outcome == Lending::NoAnswer ? Refusal::NoAnswer : Refusal::PortTaken, now);
            }
            client.due = std::max(now + config_.again, hidden_until_);
    }
}

Hub::Lending Hub::try_lend(ClientId id, Client& client, Instant now) {
    const Lending taken = take_slot(client.slot, now);
    if (taken != Lending::Done) {
        return taken;
    }
    client.state = Client::State::Member;
    programs_.add(client.slot, id);
    hands_.drain(client.slot);
    counters_.count(Counter::Lent);
    if (!hands_.send(id, Lent{client.slot, slots_.sockets()}) || !hands_.send_sockets(id)) {
        end(id, now);
    }
    return Lending::Done;
}

// Takes a slot that has rested, else a new one, else one that has not rested.
Hub::Lending Hub::take_slot(Slot& slot, Instant now) {
    if (slots_.sockets() == 0) {
        if (hands_.open() == Hands::Opening::Taken) {
            return Lending::PortTaken;
        }
        slots_.grow(1, Slots::State::Free);
    }
    std::optional<Slot> found = slots_.lend(now - config_.rest);
    Lending failed = Lending::Full;
    if (!found && slots_.sockets() < config_.sockets) {
        failed = grow(now);
    }
    found = found ? found : slots_.lend(now);  // a new one has been free for ever
    slot = found.value_or(Slot{});
    return found ? Lending::Done : failed;
}

// Adds a socket. Finding out about hidden sockets takes long, so all waiting clients share what one of them found.
Hub::Lending Hub::grow(Instant now) {
    if (now < hidden_until_) {
        return Lending::NoAnswer;
    }
    switch (hands_.grow()) {
        case Hands::Growth::Grown:
            slots_.grow(static_cast<std::uint16_t>(slots_.sockets() + 1), Slots::State::Free);
            return Lending::Done;
        case Hands::Growth::Hidden:
            counters_.count(Counter::Hidden);
            hidden_until_ = hands_.read_clock() + config_.again;
            return Lending::NoAnswer;
        case Hands::Growth::Refused:
            break;
    }
    return Lending::NoResources;
}

void Hub::refuse(ClientId id, Refusal why, Instant now) {
    counters_.count(Counter::Refused);
    (void)hands_.send(id, Refused{why});
    end(id, now);
}

void Hub::end_garbage(ClientId id, Instant now) {
    counters_.count(Counter::Garbage);
    end(id, now);
}

void Hub::end(ClientId id, Instant now) {
    hands_.end(id);
    forget(clients_.find(id), now);
}

void Hub::forget(Clients::iterator found, Instant now) {
    if (found->second.state == Client::State::Member) {
        counters_.count(Counter::Ended);
        programs_.remove(found->second.slot, now);
        slots_.give_back(found->second.slot, now);
    }
    idle_since_ = found->second.state == Client::State::Silent ? idle_since_ : now;
    clients_.erase(found);
}

}  // namespace cairn::broker
