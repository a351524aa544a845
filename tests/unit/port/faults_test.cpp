// Faults as a text.
#include <gtest/gtest.h>

#include "lib/port/faults.hpp"

namespace cairn::port {
namespace {

TEST(FaultsTest, EachFaultHasItsValue) {
    const Faults faults = parse_faults(
                              "loss=1%,duplicates=0.5%,reorder=100%,damage=0.0001%,delay=1.5ms,seed=7,qp=2s,"
                              "port=2s+500ms,peer=2001:db8::1@3us")
                              .value();
    EXPECT_EQ(faults.loss_per_million, 10'000U);
    EXPECT_EQ(faults.duplicates_per_million, 5'000U);
    EXPECT_EQ(faults.reorder_per_million, 1'000'000U);
    EXPECT_EQ(faults.damage_per_million, 1U);
    EXPECT_EQ(faults.delay, microseconds(1500));
    EXPECT_EQ(faults.seed, 7U);
    EXPECT_EQ(faults.queue_pair, seconds(2));
    EXPECT_EQ(faults.port.begin, seconds(2));
    EXPECT_EQ(faults.port.length, milliseconds(500));
    EXPECT_EQ(faults.peer->text(), "2001:db8::1");
    EXPECT_EQ(faults.peer_outage.begin, microseconds(3));
    EXPECT_EQ(faults.peer_outage.length, Outage::kNever);
}

TEST(FaultsTest, NoFaultsAreNone) {
    const Faults none = parse_faults("").value();
    EXPECT_FALSE(none.any_of_port());
    EXPECT_EQ(none.text(), "");
    EXPECT_FALSE(none.port.happens());
    EXPECT_FALSE(none.port.covers(seconds(1'000'000)));
    EXPECT_FALSE(parse_faults("seed=3,qp=1s").value().any_of_port());
}

TEST(FaultsTest, EachFaultOfThePortIsOne) {
    for (const char* text :
         {"loss=1%", "duplicates=1%", "reorder=1%", "damage=1%", "delay=1ns", "port=0s", "peer=10.0.0.1@0s"}) {
        EXPECT_TRUE(parse_faults(text).value().any_of_port()) << text;
    }
}

TEST(FaultsTest, AWrongEntryIsNamed) {
    for (const char* wrong :
         {"loss",     "loss=",   "loss=1",   "loss=x%",   "loss=-1%",      "loss=101%",    "loss=nan%",
          "loss=1%%", "delay=1", "delay=1m", "delay=-1s", "delay=100000s", "delay=s",      "seed=-1",
          "seed=x",   "port=",   "port=1s+", "port=1s+2", "peer=10.0.0.1", "peer=host@1s", "peer=10.0.0.1@",
          "qp=soon",  "rain=1%", "=",        " loss=1%"}) {
        const auto refused = parse_faults(std::string("seed=1,") + wrong);
        if (std::string(wrong).starts_with("seed")) {
            EXPECT_FALSE(parse_faults(wrong).ok()) << wrong;
            continue;
        }
        ASSERT_FALSE(refused.ok()) << wrong;
        EXPECT_NE(refused.error().what.find("'" + std::string(wrong) + "'"), std::string::npos)
            << refused.error().text();
        EXPECT_NE(refused.error().remedy.find("loss=1%"), std::string::npos);
    }
    EXPECT_FALSE(parse_faults(",").ok());
    EXPECT_FALSE(parse_faults("loss=1%,,seed=1").ok());
}

TEST(FaultsTest, AFaultComesOnce) {
    const auto refused = parse_faults("loss=1%,loss=2%");
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("'loss=2%' comes twice"), std::string::npos);
}

TEST(FaultsTest, AnOutageCoversItsTime) {
    const Outage outage{seconds(1), seconds(2)};
    EXPECT_FALSE(outage.covers(seconds(1) - nanoseconds(1)));
    EXPECT_TRUE(outage.covers(seconds(1)));
    EXPECT_TRUE(outage.covers(seconds(3) - nanoseconds(1)));
    EXPECT_FALSE(outage.covers(seconds(3)));
    EXPECT_TRUE((Outage{seconds(1), Outage::kNever}.covers(seconds(1'000'000))));
}

TEST(FaultsTest, TheTextReadsTheSame) {
    for (const char* text : {"loss=1%,seed=1", "duplicates=0.5%,reorder=2%,damage=0.0001%,delay=1500000ns,seed=9",
                             "port=1ns+2ns,seed=1", "port=5ns,seed=1", "peer=10.0.0.1@3ns+4ns,qp=2ns,seed=1"}) {
        EXPECT_EQ(parse_faults(text).value().text(), text);
    }
}

}  // namespace
}  // namespace cairn::port
