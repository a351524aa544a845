// The greetings of a client and its daemon, as bytes.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fs/message/hello.hpp"

namespace cairn::fs {
namespace {

using Packet = std::vector<std::uint8_t>;

Welcome sample_welcome() {
    Welcome welcome;
    welcome.client = 0x0102030405060708;
    welcome.root = {1, 1};
    welcome.chunk_bytes = 1U << 20U;
    welcome.spread = Spread::Koyama;
    welcome.daemons = 4;
    welcome.placement_key = 99;
    welcome.local = {2, 0x0304};
    welcome.shape = {16, 1U << 20U};
    welcome.table = SlotTable(8);
    return welcome;
}

// Checks that a truncated or longer message, or one of another kind, version or magic, is refused.
void refuses_others(const Packet& sound, const std::function<bool(std::span<const std::uint8_t>)>& parses) {
    ASSERT_TRUE(parses(sound));
    for (std::size_t length = 0; length != sound.size(); ++length) {
        EXPECT_FALSE(parses(std::span(sound).first(length))) << length;
    }
    Packet longer = sound;
    longer.push_back(0);
    EXPECT_FALSE(parses(longer));
    for (std::size_t at = 0; at != 8; ++at) {
        Packet other = sound;
        other[at] ^= 1U;
        EXPECT_FALSE(parses(other)) << at;
    }
}

TEST(Hello, IsReadAsItWasWritten) {
    const Packet bytes = bytes_of(Hello{77});
    EXPECT_EQ(bytes, (Packet{'c', 'C', 'f', 's', 1, 0, 1, 0, 77, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(parse_hello(bytes)->client, 77U);
    refuses_others(bytes, [](auto packet) { return parse_hello(packet).has_value(); });
}

TEST(Hello, ChannelsAreAskedFor) {
    const Packet bytes = bytes_of(ChannelRequest{0x0405});
    EXPECT_EQ(parse_channel_request(bytes)->shard, 0x0405);
    refuses_others(bytes, [](auto packet) { return parse_channel_request(packet).has_value(); });
}

TEST(Hello, BuffersAreAskedFor) {
    const Packet bytes = bytes_of(BuffersRequest{8192});
    EXPECT_EQ(parse_buffers_request(bytes)->bytes, 8192U);
    refuses_others(bytes, [](auto packet) { return parse_buffers_request(packet).has_value(); });
    EXPECT_TRUE(parse_buffers_request(bytes_of(BuffersRequest{BuffersRequest::kMost})).has_value());
    EXPECT_FALSE(parse_buffers_request(bytes_of(BuffersRequest{BuffersRequest::kMost + 4096})).has_value());
    EXPECT_FALSE(parse_buffers_request(bytes_of(BuffersRequest{8191})).has_value());
}

TEST(Hello, RefusalsSayWhy) {
    const Packet bytes = bytes_of(Refusal{"no more clients: start it with more"});
    EXPECT_EQ(parse_refusal(bytes)->text, "no more clients: start it with more");
    refuses_others(bytes, [](auto packet) { return parse_refusal(packet).has_value(); });
    EXPECT_EQ(parse_refusal(bytes_of(Refusal{std::string(5000, 'x')}))->text, std::string(1024, 'x'));
}

TEST(Hello, WelcomesSayAllThatAClientNeeds) {
    const Welcome sound = sample_welcome();
    const Packet bytes = bytes_of(sound);
    const std::optional<Welcome> read = parse_welcome(bytes);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->client, sound.client);
    EXPECT_EQ(read->root, sound.root);
    EXPECT_EQ(read->chunk_bytes, sound.chunk_bytes);
    EXPECT_EQ(read->spread, sound.spread);
    EXPECT_EQ(read->daemons, sound.daemons);
    EXPECT_EQ(read->placement_key, sound.placement_key);
    EXPECT_EQ(read->local, sound.local);
    EXPECT_EQ(read->shape, sound.shape);
    EXPECT_EQ(read->table, sound.table);
    EXPECT_EQ(bytes_of(*read), bytes);
    refuses_others(bytes, [](auto packet) { return parse_welcome(packet).has_value(); });
}

TEST(Hello, WelcomesOfADaemonWithAllShardsFit) {
    Welcome welcome = sample_welcome();
    welcome.table = SlotTable(kSlots);
    welcome.local.clear();
    for (std::uint32_t shard = 0; shard != kSlots; ++shard) {
        welcome.local.push_back(static_cast<std::uint16_t>(shard));
    }
    const Packet bytes = bytes_of(welcome);
    EXPECT_LE(bytes.size(), kMostHelloBytes);
    EXPECT_EQ(parse_welcome(bytes)->local, welcome.local);
}

TEST(Hello, WelcomesOfNoUseAreRefused) {
    const std::vector<std::function<void(Welcome&)>> spoils{
        [](Welcome& welcome) { welcome.local.clear(); },
        [](Welcome& welcome) { welcome.spread = static_cast<Spread>(2); },
        [](Welcome& welcome) { welcome.daemons = 0; },
        [](Welcome& welcome) { welcome.daemons = kSlots + 1; },
        [](Welcome& welcome) { welcome.chunk_bytes = 0; },
        [](Welcome& welcome) { welcome.shape.slots = 0; },
        [](Welcome& welcome) { welcome.shape.slots = ChannelShape::kMostSlots + 1; },
        [](Welcome& welcome) { welcome.shape.data_bytes = 4097; }};
    for (std::size_t i = 0; i != spoils.size(); ++i) {
        Welcome welcome = sample_welcome();
        spoils[i](welcome);
        EXPECT_FALSE(parse_welcome(bytes_of(welcome)).has_value()) << i;
    }
}

TEST(Counters, AreReadAsTheyWereWritten) {
    const Packet request = bytes_of(CountersRequest{});
    EXPECT_EQ(request, (Packet{'c', 'C', 'f', 's', 1, 0, 6, 0}));
    refuses_others(request, [](auto packet) { return parse_counters_request(packet).has_value(); });
    const Packet answer = bytes_of(CountersAnswer{"a 1 b\n"});
    EXPECT_EQ(parse_counters_answer(answer)->text, "a 1 b\n");
    refuses_others(answer, [](auto packet) { return parse_counters_answer(packet).has_value(); });
}

TEST(Counters, BeyondAMessageLinesAreLeftOut) {
    std::string line(99, 'x');
    line += '\n';
    std::string text;
    while (text.size() < 2 * kMostHelloBytes) {
        text += line;
    }
    const Packet bytes = bytes_of(CountersAnswer{text});
    EXPECT_LE(bytes.size(), kMostHelloBytes);
    EXPECT_EQ(parse_counters_answer(bytes)->text, text.substr(0, 32700));
}

}  // namespace
}  // namespace cairn::fs
