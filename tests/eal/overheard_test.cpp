// EAL's messages are not lost if EAL ends the process.
#include "pmd_glue/overheard.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cairn::pmd {
namespace {

TEST(Overheard, TakesWhatIsSaidOnBothStreamsAndGivesThemBack) {
    testing::internal::CaptureStderr();
    {
        Overheard overheard;
        std::fputs("one", stdout);
        std::fputs("two", stderr);
        const std::string said = overheard.finish();
        EXPECT_NE(said.find("one"), std::string::npos) << said;
        EXPECT_NE(said.find("two"), std::string::npos) << said;
        std::fputs("three", stderr);
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "three");
}

TEST(OverheardDeathTest, PassesOnWhatWasSaidBeforeAnAbort) {
    EXPECT_DEATH(
        {
            Overheard overheard;
            std::fputs("PANIC in eal_something()", stderr);
            std::abort();
        },
        "PANIC in eal_something");
}

TEST(OverheardDeathTest, PassesOnWhatWasSaidBeforeAnExit) {
    EXPECT_EXIT(
        {
            dup2(STDERR_FILENO, STDOUT_FILENO);  // death tests look at stderr
            Overheard overheard;
            std::puts("Usage: of EAL");
            std::exit(0);
        },
        testing::ExitedWithCode(0), "Usage: of EAL");
}

}  // namespace
}  // namespace cairn::pmd
