// A program's messages to a broker that does not read, because it is stopped or busy: the program does not wait, and no
// message is lost.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <map>
#include <set>

#include "lib/broker/packets.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

// A broker that reads only when the test says so.
class SlowBroker {
public:
    explicit SlowBroker(const Place& place) : group_(place), listener_(listen_at(place)) {
        EXPECT_TRUE(listener_.is_open());
        EXPECT_TRUE(group_.open());
        EXPECT_EQ(group_.grow(), KernelGroup::Growth::Grown);
    }
    // Accepts the next program, which is new or comes back.
    void meet() {
        ASSERT_TRUE(comes([&] {
            connection_ = OwnedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            return connection_.is_open();
        }));
        const std::optional<Message> first = read(true);
        ASSERT_TRUE(first.has_value());
        if (std::holds_alternative<Rejoin>(*first)) {
            ASSERT_TRUE(std::holds_alternative<Sockets>(read(true).value()));
            say(Lent{Slot{1}, 0});
            return;
        }
        say(Lent{Slot{1}, 2});
        const std::array<int, 2> sockets{group_.sockets()[0].fd(), group_.sockets()[1].fd()};
        EXPECT_TRUE(send_sockets(connection_.get(), sockets, true));
    }
    void hang_up() { connection_ = OwnedFd(); }
    void say(const Message& message) { EXPECT_TRUE(send_message(connection_.get(), message, {}, true)); }
    // Reads until `holds`.
    bool hears(const std::function<bool()>& holds) {
        return comes([&] {
            while (note(read(false))) {
            }
            return holds();
        });
    }

    std::set<std::uint32_t> wills;
    std::map<std::uint64_t, bool> services;  // and whether it is shared
    std::vector<std::uint32_t> asks;
    int strange = 0;  // revoked or released, but unknown
    bool is_lost = false;

private:
    std::optional<Message> read(bool waits) {
        const Received got = receive_packet(connection_.get(), packet_, waits);
        is_lost = is_lost || got == Received::End;
        return got == Received::Packet ? parse_message(packet_.bytes) : std::nullopt;
    }
    bool note(const std::optional<Message>& said) {
        if (!said) {
            return false;
        }
        if (const Will* const will = std::get_if<Will>(&*said)) {
            wills.insert(will->name);
        } else if (const Revoke* const revoke = std::get_if<Revoke>(&*said)) {
            strange += wills.erase(revoke->name) == 0 ? 1 : 0;
        } else if (const Release* const release = std::get_if<Release>(&*said)) {
            strange += services.erase(release->service.value) == 0 ? 1 : 0;
        } else if (const Claim* const claim = std::get_if<Claim>(&*said)) {
            services[claim->service.value] = claim->shares;
            asks.push_back(claim->ask);
        }
        return true;
    }

    KernelGroup group_;
    OwnedFd listener_;
    OwnedFd connection_;
    Packet packet_;
};

class VoiceTest : public ServerTest {
protected:
    static constexpr std::uint32_t kMany = 3000;  // more messages than a socket has room for
    static constexpr std::uint32_t kLast = 0xffff'fff0;
    static constexpr wire::ServiceId kService{0x0106'1f90};

    void SetUp() override {
        std::thread asks([this] {
            MembershipConfig patient = config();
            patient.patience = seconds(100);  // a message that waits for room would wait that long
            auto joined = Membership::join(patient);
            program = joined.ok() ? std::move(joined.value().membership) : nullptr;
        });
        broker.meet();
        asks.join();
        ASSERT_NE(program, nullptr);
    }
    Voice& voice() { return program->voice(); }
    void leave_wills(std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t name = first; name < first + count; ++name) {
            voice().leave({name, beside, {}});
        }
    }
    // Checks that it returns although the broker reads nothing.
    void say_at_once(const std::function<void()>& say) {
        std::atomic<bool> said{false};
        std::thread says([&] {
            say();
            said.store(true);
        });
        const bool at_once = comes([&] { return said.load(); });
        EXPECT_TRUE(at_once);
        if (!at_once) {
            broker.hears([&] { return said.load(); });
        }
        says.join();
    }
    // Makes a claim that another thread waits for.
    template <class Meanwhile>
    bool is_granted(bool shares, Meanwhile&& meanwhile) {
        bool granted = false;
        std::thread asks([&] { granted = voice().claim(kService, shares, seconds(20)).ok(); });
        meanwhile();
        asks.join();
        return granted;
    }
    // As is_granted(), with the broker's consent.
    bool claims(bool shares) {
        return is_granted(shares, [&] {
            const std::size_t before = broker.asks.size();
            EXPECT_TRUE(broker.hears([&] { return broker.asks.size() > before; }));
            broker.say(Claimed{broker.asks.back(), kService, true});
        });
    }
    bool claims_in_vain(bool shares) { return !voice().claim(kService, shares, milliseconds(1)).ok(); }
    // Lets the broker read all that has been sent.
    void settle() {
        voice().leave({kLast, beside, {}});
        EXPECT_TRUE(broker.hears([&] { return broker.wills.count(kLast) != 0; }));
        broker.wills.erase(kLast);
    }

    SlowBroker broker{place};
    std::unique_ptr<Membership> program;
};

TEST_F(VoiceTest, WhatDoesNotFitIsSaidOnceThereIsRoom) {
    ASSERT_TRUE(claims(true));
    say_at_once([&] {
        leave_wills(1, kMany);
        for (std::uint32_t name = 2; name <= kMany; name += 2) {
            voice().revoke(name);
        }
        voice().release(kService);
    });
    EXPECT_TRUE(broker.hears([&] { return broker.wills.size() == kMany / 2 && broker.services.empty(); }));
    settle();
    EXPECT_EQ(broker.wills.size(), kMany / 2);
    EXPECT_EQ(broker.wills.count(2), 0U);
    EXPECT_EQ(broker.strange, 0);
    EXPECT_FALSE(broker.is_lost);
}

TEST_F(VoiceTest, WhatTheBrokerNeverHeardOfIsNotTakenBack) {
    say_at_once([&] {
        leave_wills(1, kMany);  // no more fits from here on
        leave_wills(kMany + 1, kMany);
        for (std::uint32_t name = kMany + 1; name <= 2 * kMany; ++name) {
            voice().revoke(name);
        }
        voice().revoke(1);
        voice().leave({1, beside, {}});  // has the same name as the entry that the broker has to forget
        voice().revoke(1);
    });
    settle();
    EXPECT_EQ(broker.wills.size(), kMany - 1U);
    EXPECT_EQ(broker.wills.count(1), 0U);
    EXPECT_EQ(broker.strange, 0);
}

TEST_F(VoiceTest, ABrokerThatIsSlowToReadAllAgainIsNotLeft) {
    ASSERT_TRUE(claims(false));
    std::thread says([&] { leave_wills(1, kMany); });
    EXPECT_TRUE(broker.hears([&] { return broker.wills.size() == kMany; }));
    says.join();
    broker.hang_up();
    broker.wills.clear();
    broker.services.clear();
    broker.is_lost = false;
    broker.meet();
    say_at_once([&] { voice().release(kService); });
    settle();
    EXPECT_EQ(broker.wills.size(), kMany);
    EXPECT_TRUE(broker.services.empty());
    EXPECT_EQ(broker.strange, 0);
    EXPECT_FALSE(broker.is_lost);
}

TEST_F(VoiceTest, AGrantThatCameTooLateIsGivenBack) {
    EXPECT_TRUE(claims_in_vain(false));
    settle();
    ASSERT_EQ(broker.asks.size(), 1U);
    broker.say(Claimed{broker.asks[0], kService, true});
    EXPECT_TRUE(broker.hears([&] { return broker.services.empty(); }));
}

TEST_F(VoiceTest, AGrantThatCameTooLateTakesNothingFromWhoAsksAgain) {
    EXPECT_TRUE(claims_in_vain(false));
    EXPECT_TRUE(is_granted(false, [&] {
        EXPECT_TRUE(broker.hears([&] { return broker.asks.size() == 2; }));
        broker.say(Claimed{broker.asks[0], kService, true});
        broker.say(Claimed{broker.asks[1], kService, true});
    }));
    settle();
    EXPECT_EQ(broker.services.count(kService.value), 1U);
}

TEST_F(VoiceTest, AChangeThatWasGrantedTooLateIsTakenBack) {
    ASSERT_TRUE(claims(true));
    EXPECT_TRUE(claims_in_vain(false));
    EXPECT_TRUE(broker.hears([&] { return broker.asks.size() == 2; }));
    EXPECT_FALSE(broker.services.at(kService.value));
    broker.say(Claimed{broker.asks[1], kService, true});
    EXPECT_TRUE(broker.hears([&] { return broker.asks.size() == 3; }));
    EXPECT_EQ(broker.asks[2], 0U);
    EXPECT_TRUE(broker.services.at(kService.value));
}

TEST_F(VoiceTest, WhatWasNotSaidInTimeIsNotAsked) {
    say_at_once([&] {
        leave_wills(1, kMany);
        EXPECT_TRUE(claims_in_vain(false));
    });
    settle();
    EXPECT_TRUE(broker.asks.empty());
}

// At nearly each fork a thread is about to send a message.
TEST(ForkedVoiceTest, AChildThatIsForkedWhileSomethingIsSaidDoesNotWait) {
    Voice voice;
    std::atomic<bool> ends{false};
    std::thread talker([&] {
        for (std::uint32_t name = 0; !ends.load(); name = (name + 1) % 1000) {
            voice.leave({name, {}, {}});
            voice.revoke(name);
        }
    });
    for (int i = 0; i < 50; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(10);
            voice.forget_in_child();
            voice.manage();
            voice.leave({1, {}, {}});
            voice.revoke(1);
            voice.release({});
            const auto claimed = voice.claim({}, false);
            voice.say_farewell();
            _exit(!claimed.ok() && claimed.reason() == ClaimRefusal::NoAnswer ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        if (status != 0) {
            break;
        }
    }
    ends.store(true);
    talker.join();
}

// Mostly the signal comes while a message is being sent.
TEST(InterruptedVoiceTest, WhoExitsInASignalHandlerDoesNotWaitForHimself) {
    static Voice* voice_of_process = nullptr;
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(10);
            Voice voice;
            voice_of_process = &voice;
            signal(SIGVTALRM, [](int) {
                voice_of_process->revoke(1);
                _exit(0);
            });
            const itimerval soon{{0, 0}, {0, 5000 + 700 * i}};
            setitimer(ITIMER_VIRTUAL, &soon, nullptr);
            for (;;) {
                voice.revoke(1);
            }
        }
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
}

}  // namespace
}  // namespace cairn::broker
