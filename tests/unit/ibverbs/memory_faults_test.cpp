// Faults of the engine at memory that vanished are caught; all other faults reach the program as usual.
#include "lib/ibverbs/memory_faults.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <thread>

#include "lib/ibverbs/event_count.hpp"
#include "tests/support/fault_handler.hpp"

namespace cairn::ibverbs {
namespace {

sigjmp_buf way_back;
int seen = 0;
struct sigaction earlier {};

void touch(const std::uint8_t* at) {
    [[maybe_unused]] const std::uint8_t byte = *static_cast<const volatile std::uint8_t*>(at);
}

class MemoryFaultsTest : public testing::Test {
protected:
    void SetUp() override {
        seen = 0;
        pages.vanish();
    }
    void TearDown() override { signal(SIGSEGV, SIG_DFL); }
    static void install(void (*handler)(int, siginfo_t*, void*)) {
        struct sigaction programs {};
        programs.sa_sigaction = handler;
        programs.sa_flags = SA_SIGINFO;
        sigfillset(&programs.sa_mask);
        sigaction(SIGSEGV, &programs, &earlier);
    }
    static bool is_blocked(int number) {
        sigset_t now;
        pthread_sigmask(SIG_BLOCK, nullptr, &now);
        return sigismember(&now, number) == 1;
    }
    static void jump_back(int, siginfo_t*, void*) {
        ++seen;
        siglongjmp(way_back, 1);
    }
    [[nodiscard]] bool engine_access() const {
        std::uint8_t byte = 0;
        return UserMemory::run([this, &byte]() noexcept { std::memcpy(&byte, pages.all().data(), 1); });
    }

    test::Pages pages{4096};
};

TEST_F(MemoryFaultsTest, TheEnginesFaultsAreCaughtAndTheProgramsGoToItsHandler) {
    install(jump_back);
    catch_memory_faults();
    EXPECT_FALSE(engine_access());
    EXPECT_EQ(seen, 0);
    if (sigsetjmp(way_back, 1) == 0) {
        touch(pages.all().data());
        FAIL();
    }
    EXPECT_EQ(seen, 1);
    EXPECT_FALSE(engine_access());
}

TEST_F(MemoryFaultsTest, TheEnginesFaultsLeaveTheProgramsSignalsAsTheyWere) {
    install(jump_back);
    catch_memory_faults();
    EXPECT_FALSE(engine_access());
    for (const int each : {SIGSEGV, SIGBUS, SIGTERM, SIGUSR1}) {
        EXPECT_FALSE(is_blocked(each)) << each;
    }
}

TEST_F(MemoryFaultsTest, TheProgramsHandlerHasTheSignalsBlockedThatItAskedFor) {
    static bool blocked = false;
    install([](int number, siginfo_t*, void*) {
        blocked = is_blocked(SIGUSR1) && is_blocked(number);
        siglongjmp(way_back, 1);
    });
    catch_memory_faults();
    if (sigsetjmp(way_back, 1) == 0) {
        touch(pages.all().data());
        FAIL();
    }
    EXPECT_TRUE(blocked);
    EXPECT_FALSE(is_blocked(SIGUSR1));
}

// Programs that probe memory do this: they leave their handler each time.
TEST_F(MemoryFaultsTest, TheProgramsFaultsGoToItsHandlerAgainAndAgain) {
    install(jump_back);
    catch_memory_faults();
    while (seen < 3) {
        if (sigsetjmp(way_back, 1) == 0) {
            touch(pages.all().data());
            FAIL();
        }
    }
}

TEST_F(MemoryFaultsTest, AHandlerThatCameLaterIsPutBehindOurs) {
    catch_memory_faults();
    install(jump_back);
    catch_memory_faults();
    EXPECT_FALSE(engine_access());
    EXPECT_EQ(seen, 0);
}

// The handler before ours, and one that was installed later, perhaps twice. The later one passes other faults on to
// ours, which it found there.
TEST_F(MemoryFaultsTest, HandlersThatPassOnReachTheFirst) {
    static int passed_on = 0;
    passed_on = 0;
    install(jump_back);
    catch_memory_faults();
    for (int i = 1; i < 4; ++i) {
        install([](int number, siginfo_t* info, void* context) {
            ++passed_on;
            earlier.sa_sigaction(number, info, context);
        });
        catch_memory_faults();
        if (sigsetjmp(way_back, 1) == 0) {
            touch(pages.all().data());
            FAIL();
        }
        EXPECT_EQ(passed_on, i);
        EXPECT_EQ(seen, i);
    }
    EXPECT_FALSE(engine_access());
}

TEST_F(MemoryFaultsTest, WhatIsSentIsNoFaultOfTheEngine) {
    install([](int, siginfo_t*, void*) { ++seen; });
    catch_memory_faults();
    int after = 0;
    EXPECT_TRUE(UserMemory::run([&after]() noexcept {
        raise(SIGSEGV);
        after = seen;
    }));
    EXPECT_EQ(after, 1);
}

TEST_F(MemoryFaultsTest, WhatIsSentIsIgnoredWhereTheProgramIgnoresIt) {
    signal(SIGSEGV, SIG_IGN);
    catch_memory_faults();
    raise(SIGSEGV);
    raise(SIGSEGV);
    EXPECT_FALSE(engine_access());
}

// Another thread registers memory at any time meanwhile.
TEST_F(MemoryFaultsTest, AChildCatchesFaultsAsItsParentDid) {
    EventCount makes_forks_known;
    ASSERT_TRUE(makes_forks_known.open());
    install(jump_back);
    catch_memory_faults();
    std::atomic<bool> ends{false};
    std::jthread registers([&ends] {
        while (!ends.load()) {
            install(jump_back);
            catch_memory_faults();
        }
    });
    int status = 0;
    for (int i = 0; i < 40 && status == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);  // ends a process that hangs
            if (sigsetjmp(way_back, 1) == 0) {
                touch(pages.all().data());
            }
            catch_memory_faults();
            _exit(seen == 1 && !engine_access() ? 0 : 1);
        }
        ASSERT_EQ(waitpid(child, &status, 0), child);
    }
    EXPECT_EQ(status, 0);
    ends.store(true);
    registers.join();
    makes_forks_known.close();
}

using MemoryFaultsDeathTest = MemoryFaultsTest;

TEST_F(MemoryFaultsDeathTest, WithoutAHandlerAFaultEndsTheProgramAsEver) {
    signal(SIGSEGV, SIG_DFL);
    catch_memory_faults();
    EXPECT_EXIT(touch(pages.all().data()), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryFaultsDeathTest, WithoutAHandlerWhatIsSentEndsTheProgramAtOnce) {
    signal(SIGSEGV, SIG_DFL);
    catch_memory_faults();
    const auto send = [] {
        raise(SIGSEGV);
        _exit(0);
    };
    EXPECT_EXIT(send(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryFaultsDeathTest, AFaultOfAProgramThatIgnoresItEndsItAsEver) {
    signal(SIGSEGV, SIG_IGN);
    catch_memory_faults();
    EXPECT_EXIT(touch(pages.all().data()), testing::KilledBySignal(SIGSEGV), "");
}

// Such handlers were installed after ours and keep the one before them: ours.
TEST_F(MemoryFaultsDeathTest, HandlersThatPassOnToEachOtherEnd) {
    static int calls = 0;
    catch_memory_faults();
    install([](int number, siginfo_t* info, void* context) {
        if (++calls > 5) {
            _exit(1);
        }
        earlier.sa_sigaction(number, info, context);
    });
    catch_memory_faults();
    install([](int number, siginfo_t* info, void* context) { earlier.sa_sigaction(number, info, context); });
    catch_memory_faults();
    EXPECT_EXIT(touch(pages.all().data()), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace cairn::ibverbs
