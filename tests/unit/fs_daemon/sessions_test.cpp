// Clients that come and go, and hosts that are not clients.
#include <sys/eventfd.h>

#include "tests/unit/fs_daemon/sessions_fixture.hpp"

namespace cairn::fs::test {
namespace {

TEST_F(SessionsTest, AClientIsWelcomedAndGetsChannels) {
    start();
    const Guest client = guest();
    const Welcome told = welcome(client);
    EXPECT_NE(told.client, 0U);
    EXPECT_EQ(told.root, kRoot);
    EXPECT_EQ(told.local, (std::vector<std::uint16_t>{0, 1}));
    EXPECT_EQ(told.shape, config.welcome.shape);
    EXPECT_EQ(told.table, SlotTable(2));
    for (std::uint32_t number = 0; number != 2; ++number) {
        Reply got = channel(client, 1);
        const auto request = parse_channel_request(got.bytes);
        ASSERT_TRUE(request.has_value());
        EXPECT_EQ(request->shard, 1);
        ASSERT_EQ(got.fds.size(), 2U);
        const auto segment = Segment::map(::dup(got.fds[0].get()), told.shape);
        EXPECT_TRUE(segment.ok());
        EXPECT_EQ(two.orders.back().client, told.client);
        EXPECT_EQ(two.orders.back().number, number);
        EXPECT_EQ(two.orders.back().person->uid, ::getuid());
        EXPECT_EQ(two.orders.back().person->pid, ::getpid());
        EXPECT_EQ(two.orders.back().person->groups.size(), static_cast<std::size_t>(::getgroups(0, nullptr)));
    }
    EXPECT_EQ(sessions->clients(), 1U);
    EXPECT_EQ(sessions->counters().of(SessionCounter::Channels), 2U);
}

TEST_F(SessionsTest, AClientGetsMemoryForItsBuffersOnce) {
    config.buffer_bytes = 16384;
    start();
    const Guest client = guest();
    const Welcome told = welcome(client);
    (void)channel(client, 0);
    EXPECT_TRUE(one.orders.back().buffers->memory().empty());
    client.say(BuffersRequest{});
    Reply got = reply(client);
    EXPECT_EQ(parse_buffers_request(got.bytes)->bytes, 16384U);
    ASSERT_EQ(got.fds.size(), 1U);
    EXPECT_NE(::ftruncate(got.fds[0].get(), 4096), 0) << "nobody can cut it";
    const auto mine = SharedMemory::map(::dup(got.fds[0].get()), 16384, SharedMemory::Pages::AsTouched);
    ASSERT_TRUE(mine.ok());
    mine.value().bytes()[16383] = 77;
    (void)channel(client, 1);
    for (const Door* const door : {&one, &two}) {
        ASSERT_EQ(door->orders.back().buffers->memory().size(), 16384U) << "a channel of before or later";
        EXPECT_EQ(door->orders.back().buffers->memory()[16383], 77);
    }
    const Guest other = guest();
    (void)welcome(other);
    (void)channel(other, 0);
    EXPECT_TRUE(one.orders.back().buffers->memory().empty()) << "another client's";
    client.say(BuffersRequest{});
    expect_refused(client, "once");
    EXPECT_EQ(sessions->counters().of(SessionCounter::Buffers), 1U);
}

TEST_F(SessionsTest, ADaemonMayHaveNoMemoryForBuffers) {
    config.buffer_bytes = 0;
    start();
    const Guest client = guest();
    (void)welcome(client);
    client.say(BuffersRequest{});
    const Reply got = reply(client);
    EXPECT_EQ(parse_buffers_request(got.bytes)->bytes, 0U);
    EXPECT_TRUE(got.fds.empty());
    EXPECT_TRUE(parse_channel_request(channel(client, 0).bytes).has_value()) << "it is served as any other";
}

TEST_F(SessionsTest, NonsenseIsRefused) {
    start();
    const Guest client = guest();
    client.send({1, 2, 3});
    expect_refused(client, "no Hello of this version");
    const Guest other = guest();
    other.send(std::vector<std::uint8_t>(kMostHelloBytes + 1, 7));
    expect_refused(other, "too long");
    const Guest third = guest();
    (void)welcome(third);
    third.say(Hello{});
    expect_refused(third, "no request for a channel");
    const Guest fourth = guest();
    (void)welcome(fourth);
    fourth.say(ChannelRequest{2});
    expect_refused(fourth, "shard 2");
    const Guest fifth = guest();  // it talks on without reading
    for (int i = 0; i != 5; ++i) {
        fifth.send({9});
    }
    expect_refused(fifth, "no Hello of this version");
    EXPECT_EQ(count(SessionCounter::Refused), 5U);
    EXPECT_EQ(count(SessionCounter::Nonsense), 4U);
    EXPECT_EQ(count(SessionCounter::OtherShard), 1U);
    EXPECT_EQ(sessions->clients(), 0U);
}

TEST_F(SessionsTest, AClientHasSoManyChannelsToAShard) {
    start();
    const Guest client = guest();
    (void)welcome(client);
    for (int i = 0; i != SessionConfig::kChannels; ++i) {
        EXPECT_EQ(channel(client, 0).fds.size(), 2U);
    }
    EXPECT_EQ(channel(client, 1).fds.size(), 2U);
    client.say(ChannelRequest{0});
    expect_refused(client, "at most 16 channels");
    EXPECT_EQ(count(SessionCounter::TooMany), 1U);
}

TEST_F(SessionsTest, ClientsBeyondTheMostAreRefusedUntilOneIsForgotten) {
    start();
    Guest first = guest();
    const Guest second = guest();
    const Guest third = guest();
    (void)welcome(first);
    (void)welcome(second);
    (void)welcome(third);
    const Guest fourth = guest();
    fourth.say(Hello{});
    expect_refused(fourth, "--max-clients");
    one.holds = true;
    leave(first);
    const Guest fifth = guest();
    fifth.say(Hello{});
    expect_refused(fifth, "--max-clients");  // a shard may still have its channels
    one.holds = false;
    one.let_go();
    serve();
    (void)welcome(guest());
}

TEST_F(SessionsTest, WhoSaysNothingIsHungUpOn) {
    config.patience = milliseconds(20);
    start();
    const Guest silent = guest();
    expect_refused(silent, "nothing was said");
    EXPECT_EQ(count(SessionCounter::Silent), 1U);
    const Guest client = guest();
    (void)welcome(client);
    serve(40);
    EXPECT_FALSE(client.has_news());  // a client may be silent for any time
}

TEST_F(SessionsTest, SilenceKeepsNobodyOut) {
    start();
    std::vector<Guest> silent;
    for (int i = 0; i != 50; ++i) {
        silent.push_back(guest());
    }
    const Guest client = guest();
    (void)welcome(client);
    EXPECT_NE(parse_refusal(silent.front().read().bytes), std::nullopt);
    EXPECT_GE(count(SessionCounter::Crowded), 35U);
}

TEST_F(SessionsTest, AllShardsDrainBeforeOneForgets) {
    start();
    Guest client = guest();
    const std::uint64_t number = welcome(client).client;
    (void)channel(client, 0);
    two.holds = true;
    leave(client);
    EXPECT_EQ(one.drained, std::vector<std::uint64_t>{number});
    EXPECT_EQ(two.drained, std::vector<std::uint64_t>{number});
    EXPECT_TRUE(one.forgotten.empty());
    two.let_go();
    serve();
    EXPECT_EQ(one.forgotten, std::vector<std::uint64_t>{number});
    EXPECT_EQ(two.forgotten, std::vector<std::uint64_t>{number});
    EXPECT_EQ(sessions->clients(), 1U);
    two.let_go();
    serve();
    EXPECT_EQ(sessions->clients(), 0U);
    EXPECT_EQ(sessions->counters().of(SessionCounter::Left), 1U);
}

TEST_F(SessionsTest, ANumberIsKeptByItsUserAlone) {
    config.max_clients = 32;
    start();
    const ClientNumbers numbers(kKey);
    const std::uint64_t own = numbers.make(::getuid(), 77);
    const std::uint64_t strangers = numbers.make(::getuid() + 1, 77);
    const Guest thief = guest();
    const std::uint64_t given = welcome(thief, strangers).client;
    EXPECT_NE(given, strangers);
    EXPECT_TRUE(numbers.is_of(::getuid(), given));
    EXPECT_NE(welcome(guest(), own ^ 1U).client, own ^ 1U);  // a number that was never given to a client
    serve();
    Guest back = guest();
    EXPECT_EQ(welcome(back, own).client, own);
    EXPECT_EQ(sessions->counters().of(SessionCounter::Returned), 1U);
    const Guest twin = guest();
    EXPECT_NE(welcome(twin, own).client, own);  // while another client has it
    one.holds = true;
    leave(back);
    for (int i = 0; i != 2; ++i) {  // while a shard may have its channels or open files
        const Guest early = guest();
        early.say(Hello{own});
        expect_refused(early, "try again");
        one.let_go();
        serve();
    }
    EXPECT_EQ(count(SessionCounter::Early), 2U);
    EXPECT_EQ(welcome(guest(), own).client, own);
}

TEST_F(SessionsTest, WhoHangsUpBeforeItsChannelIsMadeLeavesNothing) {
    start();
    one.holds = true;
    Guest client = guest();
    const std::uint64_t number = welcome(client).client;
    client.say(ChannelRequest{0});
    serve();
    EXPECT_EQ(one.orders.size(), 1U);
    leave(client);
    EXPECT_EQ(one.drained, std::vector<std::uint64_t>{number});
    one.let_go();  // the channel is made without a client, and then drained
    serve();
    one.let_go();
    serve();
    EXPECT_EQ(one.forgotten, std::vector<std::uint64_t>{number});
    EXPECT_EQ(sessions->clients(), 0U);
    EXPECT_EQ(sessions->counters().of(SessionCounter::Channels), 0U);
}

TEST_F(SessionsTest, ABreachIsSaidAndHungUpOn) {
    start();
    const Guest client = guest();
    const std::uint64_t number = welcome(client).client;
    one.tell(ShardNews::What::Breach, number);
    one.tell(ShardNews::What::Breach, number);
    expect_refused(client, "what no client writes");
    ASSERT_EQ(said().size(), 1U);
    EXPECT_NE(said()[0].find(std::to_string(::getpid())), std::string::npos);
    EXPECT_EQ(two.drained, std::vector<std::uint64_t>{number});
}

TEST_F(SessionsTest, AChannelThatCannotBeMadeIsRefused) {
    start();
    one.holds = true;
    const Guest client = guest();
    const std::uint64_t number = welcome(client).client;
    client.say(ChannelRequest{0});
    serve();
    one.held.clear();
    one.holds = false;
    one.tell(ShardNews::What::ChannelFailed, number);
    expect_refused(client, "no descriptor");
    EXPECT_EQ(count(SessionCounter::Descriptors), 1U);
}

TEST_F(SessionsTest, WhoDoesNotReadIsNotWaitedFor) {
    start();
    const Guest deaf = guest();
    (void)welcome(deaf);
    const Guest client = guest();
    for (int i = 0; i != SessionConfig::kChannels; ++i) {
        deaf.say(ChannelRequest{0});
        deaf.say(ChannelRequest{1});
    }
    (void)welcome(client);
    EXPECT_EQ(channel(client, 1).fds.size(), 2U);
}

TEST_F(SessionsTest, ItEndsWhenItIsToldTo) {
    start();
    const OwnedFd stop(::eventfd(0, EFD_NONBLOCK));
    ASSERT_TRUE(sessions->serve(stop.get(), milliseconds(1)));
    ASSERT_EQ(eventfd_write(stop.get(), 1), 0);
    EXPECT_FALSE(sessions->serve(stop.get(), seconds(100)));
}

}  // namespace
}  // namespace cairn::fs::test
