// Resources that one user, or one client, cannot take from others.
#include <sys/fsuid.h>

#include "tests/unit/fs_daemon/sessions_fixture.hpp"

namespace cairn::fs::test {
namespace {

// A guest of a user that is neither root nor the daemon's own.
Guest guest_of_another_user(const std::string& path) {
    const bool is_root = ::geteuid() == 0;
    if (is_root) {
        EXPECT_EQ(::seteuid(20001), 0);
        ::setfsuid(0);  // it may still connect to the socket
    }
    Guest made(path);
    if (is_root) {
        EXPECT_EQ(::seteuid(0), 0);
    }
    return made;
}

TEST_F(SessionsTest, OneUserLeavesRoomForOthers) {
    config.own_user = ::geteuid() + 1;
    config.max_user_clients = 2;
    start();
    Guest first = guest_of_another_user(place.socket_path());
    const Guest second = guest_of_another_user(place.socket_path());
    (void)welcome(first);
    (void)welcome(second);
    const Guest third = guest_of_another_user(place.socket_path());
    third.say(Hello{});
    expect_refused(third, "--max-user-clients");
    EXPECT_EQ(count(SessionCounter::Share), 1U);
    EXPECT_EQ(count(SessionCounter::Full), 0U);
    leave(first);
    (void)welcome(guest_of_another_user(place.socket_path()));
}

TEST_F(SessionsTest, LinesAboutClientsAreFew) {
    config.say_every = seconds(100);
    start();
    for (int i = 0; i != 3; ++i) {
        const Guest client = guest();
        one.tell(ShardNews::What::Breach, welcome(client).client);
        expect_refused(client, "what no client writes");
    }
    EXPECT_EQ(said().size(), 1U);
    EXPECT_EQ(count(SessionCounter::Breach), 3U);
}

TEST_F(SessionsTest, LinesThatWereNotSaidAreCounted) {
    config.say_every = milliseconds(200);
    start();
    for (int i = 0; i != 1000 && said().size() < 2; ++i) {
        const Guest client = guest();
        one.tell(ShardNews::What::Breach, welcome(client).client);
        expect_refused(client, "what no client writes");
    }
    ASSERT_EQ(said().size(), 2U);
    const std::uint64_t unsaid = count(SessionCounter::Breach) - 2;
    EXPECT_EQ(said()[1].find("more before") != std::string::npos, unsaid != 0) << said()[1];
    EXPECT_NE(said()[1].find(unsaid == 0 ? "user" : std::to_string(unsaid)), std::string::npos) << said()[1];
}

TEST_F(SessionsTest, CountersAreToldAlsoWhereThereIsNoRoom) {
    config.max_clients = 1;
    config.counters_text = [] { return std::string("  one  1  of a kind\n"); };
    start();
    const Guest client = guest();
    (void)welcome(client);
    const Guest asker = guest();
    asker.say(CountersRequest{});
    const std::optional<CountersAnswer> answer = parse_counters_answer(reply(asker).bytes);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->text, "  one  1  of a kind\n");
    serve();
    EXPECT_TRUE(asker.has_news());
    EXPECT_TRUE(asker.read().bytes.empty());  // it closed the connection
    EXPECT_EQ(count(SessionCounter::Refused), 0U);
    client.say(CountersRequest{});
    expect_refused(client, "no request for a channel");
}

TEST_F(SessionsTest, DescriptorsAreNotTaken) {
    const OwnedFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const int off = 0;
    if (::setsockopt(probe.get(), SOL_SOCKET, 83, &off, sizeof(off)) != 0) {
        GTEST_SKIP() << "this kernel has no SO_PASSRIGHTS";
    }
    start();
    const Guest client = guest();
    EXPECT_FALSE(client.send_with_descriptor(bytes_of(Hello{}), 0));
    (void)welcome(client);
    EXPECT_FALSE(client.send_with_descriptor(bytes_of(ChannelRequest{0}), 0));
}

}  // namespace
}  // namespace cairn::fs::test
