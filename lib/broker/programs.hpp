// The programs that have a slot: their services and connections, and the forwarding of datagrams to them.
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

// The part of the hub for programs that have a slot.
class Programs {
public:
    // Makes the object. `hands` and `counters` outlive it. `local`: the address that is shared.
    Programs(Hands& hands, const net::IpAddress& local, telemetry::CounterSet<Counter>& counters)
        : hands_(hands), counters_(counters), mads_(local) {}
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;

    // Gives the slot to the client from now on.
    void add(Slot slot, ClientId client) { members_[slot] = {client, false}; }
    // Takes the slot from its client. The farewell messages of its program are sent then.
    void remove(Slot slot, Instant now);
    // Lets programs of an earlier broker come back until then, and claim their services.
    void expect_old_claims(Instant until) noexcept { settled_at_ = until; }

    // Take in a message of a program, one kind each.
    void hear(Slot from, const Stray& said, Instant) { lead(said, from); }
    void hear(Slot from, const Manage&, Instant) { members_.at(from).manages = true; }
    void hear(Slot from, const Claim& said, Instant now);
    void hear(Slot from, const Release& said, Instant) { services_.release(from, said.service); }
    void hear(Slot from, const Will& said, Instant);
    void hear(Slot from, const Revoke& said, Instant) { wills_.revoke(from, said.name); }
    // Forwards a datagram that came to the program `from`, or to the broker if that is nullopt.
    void lead(const Stray& stray, std::optional<Slot> from);

    void on_timeout(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept;
    // Returns whether no farewell message of a program that died is to be sent.
    [[nodiscard]] bool idle() const noexcept { return wills_.idle(); }
    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    [[nodiscard]] const Services& services() const noexcept { return services_; }

private:
    struct Member {
        ClientId client{};
        bool manages = false;  // answers management datagrams that are for no program
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
