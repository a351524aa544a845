// The variables that a test's user may set, and how a test refuses bad values.
#include "tests/support/environment.hpp"

#include <gtest/gtest.h>

namespace cairn::test {
namespace {

TEST(Environment, ANumberThatMakesNoSenseEndsTheProgram) {
    for (const char* const text : {"many", "0", "-1", "1e3", "3 ", " 3", "18446744073709551616"}) {
        const auto ask = [text] {
            ::setenv("SIM_RUNS", text, 1);
            std::fprintf(stderr, "so many: %llu\n", static_cast<unsigned long long>(histories(300)));
            std::exit(0);
        };
        EXPECT_EXIT(ask(), testing::ExitedWithCode(2), "SIM_RUNS=") << text;
    }
    const auto ask = [] {
        ::setenv("SIM_SEED", "18446744073709551615", 1);
        std::exit(static_cast<int>(first_seed() % 2));
    };
    EXPECT_EXIT(ask(), testing::ExitedWithCode(2), "SIM_SEED=18446744073709551615");
}

TEST(Environment, ANumberIsTakenAsItStands) {
    const auto ask = [](const char* runs, std::uint64_t expected) {
        ::setenv("SIM_RUNS", runs, 1);
        ::unsetenv("SIM_THOROUGH");
        std::exit(histories(120, 300) == expected ? 0 : 1);
    };
    EXPECT_EXIT(ask("1", 1), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(ask("3000", 3000), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(ask("", 120), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cairn::test
