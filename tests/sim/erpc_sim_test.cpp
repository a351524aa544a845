// eRPC under a swarm of faults: SIM_RUNS histories (120), each from one seed, beginning with SIM_SEED (1). With
// SIM_TEXT each prints its events.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "rpc/sim/erpc_scenario.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

// A history of the world "erpc" or "small". It says how to run it again, and keeps the last frames for Wireshark.
struct Running {
    std::string_view name;
    std::uint64_t seed = 0;
    const ErpcWorld* world = nullptr;

    [[nodiscard]] std::string report() const {
        const std::string file = testing::TempDir() + "erpc_sim_" + std::to_string(seed) + ".pcap";
        const bool written = world->network().capture().write(file);
        return world->text() + "\n  " + replay_of(name, seed) + "\n  " +
               (written ? "frames: " + file : "no frames written");
    }
};
Running running;  // the current history, in case an assertion ends the program

void on_abort(int) {
    if (running.world != nullptr) {  // raised by this very thread, outside the allocator
        std::fprintf(stderr, "%s\n", running.report().c_str());
    }
}

void live_through(std::string_view name, std::uint64_t seed) {
    ErpcWorld world(seed, name == "small" ? WorldPlan::small_of_seed(seed) : WorldPlan::of_seed(seed));
    running = {name, seed, &world};
    std::signal(SIGABRT, on_abort);
    const std::optional<std::string> broken = world.run();
    std::signal(SIGABRT, SIG_DFL);
    if (std::getenv("SIM_TEXT") != nullptr) {
        std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), world.text().c_str());
    }
    if (broken) {
        ADD_FAILURE() << *broken << "\n  " << running.report();
    }
    running = {};
}

TEST(ErpcSwarm, KeepsItsPromisesUnderEverySeed) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = test::histories(120, 300);
    for (std::uint64_t seed = first; seed < first + runs && !testing::Test::HasFailure(); ++seed) {
        live_through("erpc", seed);
    }
}

TEST(ErpcSwarm, KeepsItsPromisesUnderTheSeedsThatOnceBrokeThem) {
    for (const std::string_view name : {"erpc", "small"}) {
        for (const std::uint64_t seed : regressions_of(name)) {
            live_through(name, seed);
        }
    }
}

TEST(ErpcSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        ErpcWorld first(seed, WorldPlan::of_seed(seed));
        ErpcWorld second(seed, WorldPlan::of_seed(seed));
        EXPECT_EQ(first.run(), second.run());
        EXPECT_EQ(first.network().trace_hash(), second.network().trace_hash()) << seed;
        EXPECT_EQ(first.counters(), second.counters());
        EXPECT_EQ(first.node_totals(), second.node_totals());
    }
}

// Seeds with empty pools are left out: a path draws a random number each time that it asks for buffers.
TEST(ErpcSwarm, TheShortPathChangesNoHistory) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = (test::histories(120, 300) + 2) / 3;
    std::uint64_t compared = 0;
    for (std::uint64_t seed = first; seed < first + runs && !testing::Test::HasFailure(); ++seed) {
        WorldPlan plan = seed % 20 == 0 ? WorldPlan::of_seed(seed) : WorldPlan::small_of_seed(seed);
        ErpcWorld with(seed, plan);
        if (with.text().find("pool empty") != std::string::npos) {
            continue;
        }
        plan.short_path = false;
        ErpcWorld without(seed, plan);
        ++compared;
        EXPECT_EQ(with.run(), without.run()) << seed << (seed % 20 == 0 ? ", --world erpc" : ", --small");
        EXPECT_EQ(with.network().trace_hash(), without.network().trace_hash()) << seed;
        EXPECT_EQ(with.counters(), without.counters()) << seed;
        EXPECT_EQ(with.node_totals(), without.node_totals()) << seed;
    }
    EXPECT_GE(compared, runs / 4);  // one history alone may have none
}

TEST(ErpcSwarm, AnotherSeedIsAnotherHistory) {
    ErpcWorld first(1000, WorldPlan::of_seed(1000));
    ErpcWorld second(1030, WorldPlan::of_seed(1030));  // the same number of nodes and the same family
    (void)first.run();
    (void)second.run();
    EXPECT_NE(first.network().trace_hash(), second.network().trace_hash());
}

// With so little memory large requests often take the share of their session. The promises need more memory.
TEST(ErpcSwarm, TheFaultsReallyHappen) {
    constexpr std::uint32_t kVeryScarce = 64;
    LinkCounters network;
    ErpcCounters world;
    NodeTotals nodes;
    for (std::uint64_t seed = 1; seed <= 80; ++seed) {
        WorldPlan plan = WorldPlan::of_seed(seed);
        plan.scarce_part = kVeryScarce;
        ErpcWorld each(seed, plan);
        (void)each.run();
        network += each.network().totals();
        world += each.counters();
        nodes += each.node_totals();
    }
    std::map<std::string_view, std::uint64_t> counts{{"lost", network.lost},
                                                     {"lost in bursts", network.burst_lost},
                                                     {"doubled", network.duplicated},
                                                     {"late", network.late_copies},
                                                     {"damaged", network.corrupted},
                                                     {"lost to partitions", network.partitioned},
                                                     {"dropped by queues", network.tail_dropped},
                                                     {"refused by rings", nodes.refused},
                                                     {"starved by pools", nodes.starved},
                                                     {"forged", world.forged},
                                                     {"answered", world.calls_ok},
                                                     {"nested", world.nested},
                                                     {"babbled", world.babbled},
                                                     {"to the babbler", world.odd_calls},
                                                     {"sessions of the intruder", world.intruded},
                                                     {"replayed", world.replayed},
                                                     {"spoofed", world.spoofed},
                                                     {"awaited", world.awaited},
                                                     {"executed by threads", world.jobs},
                                                     {"clocks that went back", nodes.clock_went_back},
                                                     {"clocks that leapt", nodes.clock_leapt},
                                                     {"cancelled", world.cancelled},
                                                     {"past their deadline", world.deadlines_passed},
                                                     {"peers lost", world.peers_lost},
                                                     {"too long", world.too_long},
                                                     {"restarts", nodes.restarts}};
    const auto reasons = counter_texts(erpc::Drop::Count);
    for (std::size_t reason = 0; reason < reasons.size(); ++reason) {
        counts.emplace(reasons[reason].name, world.drops.values[reason]);
    }
    for (const auto& [what, count] : counts) {
        EXPECT_GE(count, 3U) << what;
    }
}

// Checks each message, at each offset in foreign bytes.
TEST(MessageContents, TellWhoseTheyAreWhereverTheyLie) {
    Random random(7);
    for (std::uint32_t serial = 0; serial < 50; ++serial) {
        const CallTag tag{serial % 5, serial * 1000, 80};
        std::vector<std::uint8_t> bytes(200);
        for (std::uint8_t& octet : bytes) {
            octet = static_cast<std::uint8_t>(random.next());
        }
        std::vector<Owner> owners;
        const auto find = [&] {
            owners.clear();
            for_each_owner(bytes, [&owners](const Owner& owner) { owners.push_back(owner); });
        };
        find();
        EXPECT_TRUE(owners.empty());
        const std::span<std::uint8_t> message = std::span(bytes).subspan(serial, tag.response_bytes);
        fill_response(message, tag);
        EXPECT_TRUE(holds(message, 0, tag, Part::Response));
        EXPECT_FALSE(holds(message, 0, {tag.client, tag.serial + 256, 80}, Part::Response));
        find();
        EXPECT_EQ(owners.size(), tag.response_bytes / 8 - 1);
        for (const Owner& owner : owners) {
            EXPECT_TRUE(owner.client == tag.client && owner.serial == tag.serial && owner.part == Part::Response);
        }
        message[random.below(message.size())] ^= 1;
        EXPECT_FALSE(holds(message, 0, tag, Part::Response));
    }
}

TEST(MessageContents, AnAnswerHasNothingBehindWhatItsHandlerWrote) {
    for (const std::uint32_t serial : {6U, 7U}) {  // the second handler writes a third of the answer
        const CallTag tag{1, serial, 90};
        const std::uint32_t written = serial == 7 ? 30 : 90;
        EXPECT_EQ(written_of(tag), written);
        std::vector<std::uint8_t> room(90);
        EXPECT_FALSE(has_content(room));
        EXPECT_TRUE(write_response(room, tag));
        EXPECT_TRUE(has_content(room));
        EXPECT_TRUE(is_response(room, written, tag));
        EXPECT_EQ(is_clean(std::span(room).subspan(30)), serial == 7);
        EXPECT_FALSE(write_response(room, tag)) << "it holds something";
        room.back() ^= 1;
        EXPECT_FALSE(is_response(room, written, tag)) << "its last byte is another";
        std::vector<std::uint8_t> longer(91);
        EXPECT_FALSE(write_response(longer, tag)) << "so much was not asked for";
    }
}

}  // namespace
}  // namespace cairn::sim
