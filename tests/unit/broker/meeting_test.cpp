// How a program reaches its broker under difficulties: few descriptors, a broker that ends or is stopped, signals.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>

#include "lib/base/passed_fds.hpp"
#include "lib/broker/meeting.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

class MeetingTest : public ServerTest {
protected:
    // Asks in a child that may open only `count` more descriptors. Returns why it gets no broker.
    [[nodiscard]] std::string ask_with_few_descriptors(int count) const {
        std::array<int, 2> pipe{};
        EXPECT_EQ(::pipe(pipe.data()), 0);
        const pid_t child = fork();
        if (child == 0) {
            std::vector<OwnedFd> allowed;
            for (int i = 0; i < count; ++i) {
                allowed.emplace_back(dup(0));
            }
            const auto most = static_cast<rlim_t>(allowed.back().get() + 1);
            allowed.clear();
            const rlimit few{most, most};
            setrlimit(RLIMIT_NOFILE, &few);
            const Meeting met = ask_for_slot({place, {}, milliseconds(500)});
            const NoBroker* const none = std::get_if<NoBroker>(&met);
            const std::string why = none != nullptr ? none->why : "it is there";
            _exit(write(pipe[1], why.data(), why.size()) < 0 ? 1 : 0);
        }
        ::close(pipe[1]);
        std::array<char, 256> why{};
        const ssize_t bytes = read(pipe[0], why.data(), why.size());
        ::close(pipe[0]);
        waitpid(child, nullptr, 0);
        return {why.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
    }
};

TEST_F(MeetingTest, WhoHasTooFewDescriptorsAsksOnceAndIsToldSo) {
    const RunningBroker broker(place);
    std::vector<std::unique_ptr<Membership>> programs;
    for (int i = 0; i < 8; ++i) {
        programs.push_back(join());
    }
    for (const int count : {1, 2, 3, 6, 11}) {  // enough for a process, a connection and some of the sockets
        const std::uint64_t lent = broker.count(Counter::Lent);
        const std::string why = ask_with_few_descriptors(count);
        EXPECT_NE(why.find("raise the limit of open files (ulimit -n)"), std::string::npos) << why;
        EXPECT_LE(broker.count(Counter::Lent), lent + 1) << why;
    }
    EXPECT_EQ(ask_with_few_descriptors(50), "it is there");
}

TEST_F(MeetingTest, MoreDescriptorsThanMayComeAreTheFaultOfWhoSendsThem) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const OwnedFd sends(ends[0]);
    const OwnedFd receives(ends[1]);
    Packet packet;
    for (const std::size_t count : {std::size_t{kMostAtOnce}, std::size_t{kMostAtOnce} + 1}) {
        const std::vector<int> fds(count, sends.get());
        ASSERT_EQ(send_with_fds<kMostAtOnce + 1>(sends.get(), std::array<std::uint8_t, 1>{1}, fds, 0), 1);
        EXPECT_EQ(receive_packet(receives.get(), packet, false),
                  count == kMostAtOnce ? Received::Packet : Received::End);
    }
}

// A slot that a broker has just lent is not lent again at once.
TEST_F(MeetingTest, WhoIsWelcomeInVainDoesNotComeAtOnce) {
    std::atomic<bool> ends{false};
    std::atomic<int> welcomes{0};
    const OwnedFd listener = listen_at(place);
    std::thread breaks_off([&] {
        while (!ends.load()) {
            const OwnedFd asks(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            Packet packet;
            if (!asks.is_open()) {
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            } else if (receive_packet(asks.get(), packet, true) == Received::Packet) {
                welcomes += send_message(asks.get(), Lent{Slot{1}, 2}, {}, true) ? 1 : 0;
            }
        }
    });
    const Meeting met = ask_for_slot({place, {}, milliseconds(400)});
    ends.store(true);
    breaks_off.join();
    EXPECT_TRUE(std::holds_alternative<NoBroker>(met));
    EXPECT_GE(welcomes.load(), 2);
    EXPECT_LE(welcomes.load(), 400 / 50 + 1);
}

std::atomic<int> ticks{0};

// Sends a signal each 10 ms, which interrupts system calls. It stops in the end, so that an endless wait is seen.
class Ticking {
public:
    static constexpr int kMost = 500;

    Ticking() {
        ticks.store(0);
        struct sigaction action {};
        action.sa_handler = [](int) {
            if (++ticks == kMost) {
                set(0);
            }
        };
        sigaction(SIGALRM, &action, &before_);
        set(10'000);
    }
    Ticking(const Ticking&) = delete;
    Ticking& operator=(const Ticking&) = delete;
    ~Ticking() {
        set(0);
        sigaction(SIGALRM, &before_, nullptr);
    }

private:
    static void set(int us) noexcept {
        const itimerval each{{0, us}, {0, us}};
        setitimer(ITIMER_REAL, &each, nullptr);
    }
    struct sigaction before_ {};
};

TEST_F(MeetingTest, SignalsDoNotMakeTheWaitForAStoppedBrokerLonger) {
    const OwnedFd listener = listen_at(place);
    const Ticking ticking;
    const Meeting met = ask_for_slot({place, {}, milliseconds(200)});
    EXPECT_LT(ticks.load(), Ticking::kMost);
    ASSERT_TRUE(std::holds_alternative<NoBroker>(met));
    EXPECT_EQ(std::get<NoBroker>(met).why, "the broker does not answer");
}

TEST_F(MeetingTest, SignalsDoNotMakeTheWaitForRoomLonger) {
    const OwnedFd listener = listen_at(place);
    const OwnedFd one = connect_to(place, milliseconds(200));
    while (send_message(one.get(), Join{}, {}, false)) {
    }
    const Ticking ticking;
    EXPECT_FALSE(send_message(one.get(), Join{}, {}, true));
    EXPECT_GT(ticks.load(), 1);
    EXPECT_LT(ticks.load(), Ticking::kMost);
}

TEST_F(MeetingTest, SignalsDoNotMakeTheWaitForAConnectionLonger) {
    const OwnedFd listener = listen_at(place);
    std::vector<OwnedFd> crowd;
    do {
        crowd.push_back(connect_to(place, milliseconds(1)));
    } while (crowd.back().is_open());
    const Ticking ticking;
    EXPECT_FALSE(connect_to(place, milliseconds(200)).is_open());
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_GT(ticks.load(), 1);
    EXPECT_LT(ticks.load(), Ticking::kMost);
}

}  // namespace
}  // namespace cairn::broker
