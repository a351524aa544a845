// The programs that have a slot: what they say of their connections, and which datagrams go to whom.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/broker/counters.hpp"
#include "lib/broker/hands.hpp"
#include "lib/broker/mad_datagram.hpp"
#include "lib/broker/services.hpp"
#include "lib/broker/wills.hpp"

namespace cairn::broker {

// A part of the hub.
class Programs {
public:
    // `hands` and `counters` outlive the object. `local`: the address that is shared.
    Programs(Hands& hands, const net::IpAddress& local, telemetry::CounterSet<Counter>& counters)
        : hands_(hands), counters_(counters), mads_(local) {}
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;

    // The client has the slot from now on.
    void add(Slot slot, ClientId client) { members_[slot] = {client, false}; }
    // It has not any more. What it wanted said then is said.
    void remove(Slot slot, Instant now);
    // Programs of an earlier broker come back until then, and claim what they had.
    void expect_old_claims(Instant until) noexcept { settled_at_ = until; }

    // A program said this. Each function takes one kind of message.
    void hear(Slot from, const Stray& said, Instant) { lead(said, from); }
    void hear(Slot from, const Manage&, Instant) { members_.at(from).manages = true; }
    void hear(Slot from, const Claim& said, Instant now);
    void hear(Slot from, const Release& said, Instant) { services_.release(from, said.service); }
    void hear(Slot from, const Will& said, Instant);
    void hear(Slot from, const Revoke& said, Instant) { wills_.revoke(from, said.name); }
    // A datagram came to the program; nothing: to the broker.
    void lead(const Stray& stray, std::optional<Slot> from);

    void on_timeout(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept;
    // Nothing is left to be said for programs that died.
    [[nodiscard]] bool idle() const noexcept { return wills_.idle(); }
    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    [[nodiscard]] const Services& services() const noexcept { return services_; }

private:
    struct Member {
        ClientId client{};
        bool manages = false;  // answers management datagrams that are for nobody else
    };

    void lead_mad(const Stray& stray);
    void forward(const Stray& stray, Slot to, std::optional<Slot> from, Counter led, Counter lost);
    [[nodiscard]] Slot any_manager() const;
    void carry_out_wills(Instant now);
    void answer(Slot to, const Claim& said);
    void answer_postponed(Instant now);

    Hands& hands_;
    telemetry::CounterSet<Counter>& counters_;
    MadJudge mads_;
    std::map<Slot, Member> members_;
    Services services_;
    Wills wills_;
    std::vector<std::pair<Slot, Claim>> postponed_;
    Instant settled_at_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace cairn::broker
