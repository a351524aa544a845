// Users in a user namespace that maps many of them to one number: which of them may have the address there.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "lib/broker/meeting.hpp"
#include "lib/broker/users.hpp"
#include "tests/support/user_namespace.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

constexpr std::string_view kMapOfAll = "         0          0 4294967295\n";
constexpr std::string_view kMapOfOne = "     65534      65534          1\n";

TEST(Users, OneNumberIsManyUsersWhereTheNamespaceDoesNotMapAll) {
    EXPECT_FALSE(is_one_user(65534, "65534\n", kMapOfOne));
    EXPECT_TRUE(is_one_user(65534, "65534\n", kMapOfAll));
    EXPECT_TRUE(is_one_user(1000, "65534\n", kMapOfOne));
    EXPECT_TRUE(is_one_user(65534, "777\n", kMapOfOne));
    EXPECT_FALSE(is_one_user(777, "777\n", kMapOfOne));
}

TEST(Users, WhatCannotBeReadIsAsUsualAndMapsNotAll) {
    for (const std::string_view nothing : {"", "\n", "x", "-1\n", "4294967296\n"}) {
        EXPECT_FALSE(is_one_user(65534, nothing, kMapOfOne));
        EXPECT_TRUE(is_one_user(1000, nothing, kMapOfOne));
        EXPECT_FALSE(is_one_user(65534, "65534\n", nothing));
    }
}

TEST(Users, AMapOfAllIsThatAndNoMore) {
    EXPECT_TRUE(is_one_user(65534, "65534\n", "0 0 4294967295"));
    for (const std::string_view other :
         {"0 0 4294967294\n", "0 100000 4294967295\n", "1 0 4294967295\n", "0 0\n", "0 0 42949672950\n",
          "0 0 4294967295 1\n", "0 0 4294967295\n5 5 1\n", "0 0 65534\n65534 65534 4294901761\n"}) {
        EXPECT_FALSE(is_one_user(65534, "65534\n", other)) << other;
    }
}

TEST(Users, APeerOfAnotherNumberIsAnotherUser) {
    EXPECT_TRUE(is_user(1000, 1000));
    EXPECT_FALSE(is_user(1000, 1001));
}

class UsersTest : public ServerTest {
protected:
    // The number in the child's namespace by which the kernel names this process, as it does all others.
    static constexpr std::uint32_t kOverflow = 65534;

    // Returns whether `holds` in a child with that uid, or nullopt if the machine allows no user namespace.
    static std::optional<bool> with_overflow_uid(const std::function<bool()>& holds) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(!test::become_in_user_namespace(kOverflow) ? test::kNoUserNamespace : holds() ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        const bool none = WIFEXITED(status) && WEXITSTATUS(status) == test::kNoUserNamespace;
        return none ? std::nullopt : std::optional(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
};

TEST_F(UsersTest, ABrokerLendsNothingToWhomItCannotTellFromOthers) {
    OwnedFd listener = listen_at(place);
    ASSERT_TRUE(listener.is_open());
    const pid_t child = fork();
    if (child == 0) {
        if (!test::become_in_user_namespace(kOverflow)) {
            _exit(test::kNoUserNamespace);
        }
        auto server = Server::make(place, std::move(listener), {}, geteuid());
        server.value()->run([] { return false; });
        _exit(0);
    }
    listener = OwnedFd();
    const OwnedFd asks = connect_to(place, seconds(10));
    Packet packet;
    const bool asked = asks.is_open() && send_message(asks.get(), Join{}, {}, true);
    const Received got = asked ? receive_packet(asks.get(), packet, true) : Received::Nothing;
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == test::kNoUserNamespace) {
        GTEST_SKIP() << "needs a user namespace";
    }
    EXPECT_EQ(got, Received::End) << "it has no programs, and makes room";
}

TEST_F(UsersTest, AProgramTakesNothingFromWhomItCannotTellFromOthers) {
    const RunningBroker broker(place);
    const std::optional<bool> holds = with_overflow_uid([&] {
        const Meeting met = ask_for_slot({place, {}, seconds(10)});
        const NoBroker* const none = std::get_if<NoBroker>(&met);
        return none != nullptr && none->why.find("uid 65534 is any user's") != std::string::npos;
    });
    if (!holds) {
        GTEST_SKIP() << "needs a user namespace";
    }
    EXPECT_TRUE(*holds);
}

TEST_F(UsersTest, WhoCannotBeToldFromOthersIsNotNamed) {
    const OwnedFd listener = listen_at(place);
    const std::string others = "programs of another user: their broker is process " + std::to_string(getpid());
    const std::optional<bool> holds = with_overflow_uid([&] {
        const std::string text = explain(place, Refusal::AnotherUser).text();
        return text.find(others) != std::string::npos;
    });
    if (!holds) {
        GTEST_SKIP() << "needs a user namespace";
    }
    EXPECT_TRUE(*holds);
}

}  // namespace
}  // namespace cairn::broker
