#include "lib/broker/programs.hpp"

#include <algorithm>

#include "lib/cm/name_share.hpp"
#include "lib/cm/steering.hpp"
#include "lib/port/qpn_owners.hpp"
#include "lib/wire/cm_message.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::broker {

namespace {

constexpr port::QpnOwners kOwners(kMostSockets);
constexpr cm::NameShare kNames{kOwners.bits(), 0};
constexpr std::size_t kMostPostponed = 4096;

}  // namespace

void Programs::remove(Slot slot, Instant now) {
    members_.erase(slot);
    services_.forget(slot);
    std::erase_if(postponed_, [slot](const auto& each) { return each.first == slot; });
    wills_.open(slot, now);
    carry_out_wills(now);
}

void Programs::on_timeout(Instant now) {
    answer_postponed(now);
    carry_out_wills(now);
}

Instant Programs::next_deadline() const noexcept {
    return std::min(wills_.next_deadline(), postponed_.empty() ? Instant::never() : settled_at_);
}

// Takes a claim. New ones wait until programs have claimed again what an earlier broker granted them.
void Programs::hear(Slot from, const Claim& said, Instant now) {
    if (said.ask != 0 && now < settled_at_ && postponed_.size() < kMostPostponed) {
        postponed_.emplace_back(from, said);
        return;
    }
    answer(from, said);
}

void Programs::answer_postponed(Instant now) {
    if (now < settled_at_) {
        return;
    }
    for (const auto& [slot, claim] : std::exchange(postponed_, {})) {
        answer(slot, claim);
    }
}

// Answers a claim. If the answer cannot be delivered, the claim is undone.
void Programs::answer(Slot to, const Claim& said) {
    const std::optional<bool> before = services_.shares(to, said.service);
    const bool has = services_.claim(to, said);
    if (!has) {
        counters_.count(Counter::ServiceTaken);
    }
    if (said.ask == 0 || hands_.send(members_.at(to).client, Claimed{said.ask, said.service, has})) {
        return;
    }
    counters_.count(Counter::NoRoom);
    if (has && before) {
        (void)services_.claim(to, {0, said.service, *before});
    } else if (has) {
        services_.release(to, said.service);
    }
}

void Programs::hear(Slot from, const Will& said, Instant) {
    if (!wills_.leave(from, said)) {
        counters_.count(Counter::WillsLost);
    }
}

void Programs::lead(const Stray& stray, std::optional<Slot> from) {
    if (stray.bytes.size() < wire::Bth::kBytes) {
        counters_.count(Counter::NoOwner);
        return;
    }
    const Qpn qpn{reinterpret_cast<const wire::RawBth*>(stray.bytes.data())->dest_qpn.get()};
    if (qpn == wire::kGeneralServicesQpn) {
        lead_mad(stray);
        return;
    }
    forward(stray, Slot{static_cast<std::uint8_t>(kOwners.of(qpn))}, from, Counter::Forwarded, Counter::NoOwner);
}

// Forwards a management datagram by the name in it, or by its service. A program drew that name, which has the
// program's slot in the low bits. A datagram with neither goes to all programs that may have sent the request which it
// answers. A datagram that no program would take wakes none.
void Programs::lead_mad(const Stray& stray) {
    if (const std::optional<Counter> why = mads_.judge(stray)) {
        counters_.count(*why);
        return;
    }
    const auto parsed = wire::CmMad::parse(stray.bytes.subspan(sizeof(wire::RawUd), wire::kMadBytes));
    if (!parsed.ok()) {
        counters_.count(Counter::NoManager);
        return;
    }
    const auto forward_to = [this, &stray](Slot slot) {
        forward(stray, slot, std::nullopt, Counter::Managed, Counter::NoManager);
    };
    const cm::Steering steering = cm::steer(parsed.value().message);
    if (const auto* const named = std::get_if<cm::ToNamed>(&steering)) {
        if (std::holds_alternative<wire::Drep>(parsed.value().message)) {
            wills_.on_answer(named->name, stray.remote);
        }
        forward_to(Slot{static_cast<std::uint8_t>(kNames.owner_of(named->name))});
    } else if (const auto* const listener = std::get_if<cm::ToListener>(&steering)) {
        // A program that has no listener refuses it.
        forward_to(services_.receiver(listener->service).value_or(any_manager()));
    } else {
        for (const auto& [slot, member] : members_) {
            if (member.manages) {
                forward_to(slot);
            }
        }
    }
}

void Programs::forward(const Stray& stray, Slot to, std::optional<Slot> from, Counter led, Counter lost) {
    const auto owner = members_.find(to);
    if (owner == members_.end() || from == to) {
        counters_.count(lost);
        return;
    }
    counters_.count(hands_.send(owner->second.client, stray) ? led : Counter::NoRoom);
}

// Returns a program that manages; slot 0 if there is none.
Slot Programs::any_manager() const {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [](const auto& each) { return each.second.manages; });
    return found == members_.end() ? Slot{} : found->first;
}

void Programs::carry_out_wills(Instant now) {
    while (const Will* const will = wills_.poll(now)) {
        counters_.count(Counter::WillsSent);
        hands_.send_mad(*will);
    }
}

}  // namespace cairn::broker
