// Connections of whole hosts under a swarm of faults: SIM_RUNS histories (80), each from one seed, beginning with
// SIM_SEED (1). With SIM_TEXT each prints its events.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "lib/sim/verbs/verbs_scenario.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

// Sums over many histories.
struct Sums {
    VerbsCounters users;
    VerbsMail mail;
    VerbsSpeech speech;
    VerbsForgeries forged;
    NodeTotals nodes;
    LinkCounters network;
    telemetry::CounterSnapshot<roce::rc::RcCounter> transport{};
    telemetry::CounterSnapshot<cm::Counter> manager{};
    std::uint64_t spread = 0;  // histories with mail, and connections on workers that depend on it

    void add(const VerbsWorld& world) {
        const VerbsCounters& each = world.users().counters();
        for (const auto field :
             {&VerbsCounters::asked, &VerbsCounters::established, &VerbsCounters::elsewhere, &VerbsCounters::rejected,
              &VerbsCounters::unreachable, &VerbsCounters::abandoned, &VerbsCounters::refused, &VerbsCounters::left,
              &VerbsCounters::broken, &VerbsCounters::not_ready, &VerbsCounters::messages, &VerbsCounters::closed,
              &VerbsCounters::shared, &VerbsCounters::writes, &VerbsCounters::reads, &VerbsCounters::atomics,
              &VerbsCounters::flushed}) {
            users.*field += each.*field;
        }
        for (const auto field :
             {&VerbsSpeech::posted, &VerbsSpeech::received, &VerbsSpeech::in_groups, &VerbsSpeech::at_home,
              &VerbsSpeech::shared, &VerbsSpeech::flushed, &VerbsSpeech::other_keys, &VerbsSpeech::memberships}) {
            speech.*field += world.users().speech().*field;
        }
        for (const auto field : {&VerbsForgeries::packets, &VerbsForgeries::copies, &VerbsForgeries::messages,
                                 &VerbsForgeries::datagrams, &VerbsForgeries::told}) {
            forged.*field += world.users().forgeries().*field;
        }
        mail.homeless += world.users().mail().homeless;
        mail.letters += world.users().mail().letters;
        spread += each.elsewhere != 0 && world.users().mail().letters != 0 ? 1U : 0U;
        nodes += world.node_totals();
        network += world.network().totals();
        transport += each.transport;
        manager += each.manager;
    }
    [[nodiscard]] std::map<std::string, std::uint64_t> counts() const;
    [[nodiscard]] std::map<std::string, std::uint64_t> others() const;
};

// Returns the sums of datagrams and of unknown peers.
std::map<std::string, std::uint64_t> Sums::others() const {
    using roce::rc::RcCounter;
    return {
        {"datagrams posted", speech.posted},
        {"datagrams received", speech.received},
        {"datagrams to groups received", speech.in_groups},
        {"datagrams of other workers of the host", speech.at_home},
        {"datagrams by shared receive queues", speech.shared},
        {"datagrams flushed", speech.flushed},
        {"datagrams to who has another key", speech.other_keys},
        {"groups left", speech.memberships},
        {"datagrams with a wrong key", nodes.drops.of(roce::Drop::BadQkey)},
        {"datagrams without a receive request", nodes.drops.of(roce::Drop::NoReceive)},
        {"forged packets", forged.packets},
        {"forged messages", forged.messages},
        {"forged datagrams", forged.datagrams},
        {"forged copies", forged.copies},
        {"forged requests that users refused", forged.told},
        {"messages for workers that are not", mail.homeless},
        {"messages of wrong peers", manager.of(cm::Counter::WrongPeer)},
        {"requests that make no sense", manager.of(cm::Counter::BadRequest)},
        {"answers to packets never sent", transport.of(RcCounter::UnsentResponse)},
    };
}

std::map<std::string, std::uint64_t> Sums::counts() const {
    using roce::rc::RcCounter;
    return {
        {"asked", users.asked},
        {"up", users.established},
        {"up on other workers", users.elsewhere},
        {"messages by mail", mail.letters},
        {"histories on several workers", spread},
        {"rejected", users.rejected},
        {"unreachable", users.unreachable},
        {"given up", users.abandoned},
        {"refused", users.refused},
        {"left", users.left},
        {"broken", users.broken},
        {"not ready in time", users.not_ready},
        {"messages", users.messages},
        {"by shared receive queues", users.shared},
        {"hosts that closed", users.closed},
        {"writes", users.writes},
        {"reads", users.reads},
        {"atomics", users.atomics},
        {"flushed", users.flushed},
        {"restarts", nodes.restarts},
        {"clocks that went back", nodes.clock_went_back},
        {"clocks that leapt", nodes.clock_leapt},
        {"refused by rings", nodes.refused},
        {"starved by pools", nodes.starved},
        {"for unknown queue pairs", nodes.drops.of(roce::Drop::UnknownQpn)},
        {"of wrong peers", nodes.drops.of(roce::Drop::WrongPeer)},
        {"lost", network.lost},
        {"lost in bursts", network.burst_lost},
        {"doubled", network.duplicated},
        {"late", network.late_copies},
        {"damaged", network.corrupted},
        {"lost to partitions", network.partitioned},
        {"dropped by queues", network.tail_dropped},
        {"duplicates", transport.of(RcCounter::DuplicateRequest)},
        {"gaps", transport.of(RcCounter::OutOfSequence)},
        {"held", transport.of(RcCounter::Held)},
        {"not ready", transport.of(RcCounter::RnrNakSent)},
        {"timeouts", transport.of(RcCounter::Timeout)},
        {"early timeouts", transport.of(RcCounter::EarlyTimeout)},
        {"implied", transport.of(RcCounter::ImpliedNak)},
        {"for queue pairs in ERR", transport.of(RcCounter::WrongState)},
        {"marked", transport.of(RcCounter::Marked)},
        {"told of marks", transport.of(RcCounter::CnpReceived)},
        {"messages of managers sent again", manager.of(cm::Counter::Retransmitted)},
        {"given up by managers", manager.of(cm::Counter::GivenUp)},
        {"copies of messages", manager.of(cm::Counter::Duplicate)},
        {"stale", manager.of(cm::Counter::Stale)},
        {"of unknown connections", manager.of(cm::Counter::UnknownConnection)},
    };
}

TEST(VerbsSwarm, KeepsItsPromisesUnderEverySeed) {
    live_through_all<VerbsWorld>("verbs", test::histories(80, 160));
}

TEST(VerbsSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        VerbsWorld once(seed);
        VerbsWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.network().trace_hash(), twice.network().trace_hash()) << seed;
        EXPECT_EQ(once.users().counters(), twice.users().counters());
        EXPECT_EQ(once.users().speech(), twice.users().speech());
        EXPECT_EQ(once.users().forgeries(), twice.users().forgeries());
        EXPECT_EQ(once.users().mail(), twice.users().mail());
        EXPECT_EQ(once.node_totals(), twice.node_totals());
        VerbsWorld other(seed + 60);
        (void)other.run();
        EXPECT_NE(once.network().trace_hash(), other.network().trace_hash());
    }
}

TEST(VerbsSwarm, TheFaultsReallyHappen) {
    Sums sums;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        VerbsWorld world(seed);
        (void)world.run();
        sums.add(world);
    }
    std::map<std::string, std::uint64_t> all = sums.counts();
    all.merge(sums.others());
    for (const auto& [what, count] : all) {
        std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
        EXPECT_GT(count, 3U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
