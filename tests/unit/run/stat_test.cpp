// The sockets of the machine that belong to programs with the library.
#include <gtest/gtest.h>

#include "apps/run/stat.hpp"

namespace cairn::launch {
namespace {

using Names = std::vector<std::string>;

TEST(ListeningSocketsTest, ThoseOfThePrefixThatListenAreFound) {
    const char* const table =
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 100 @cairn-stat.12.0a\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 101 @cairn-stat.12.0a\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/cairn-stat.13\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 103 @other.14\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 104\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 105 @cairn-stat.15.ff";
    EXPECT_EQ(listening_sockets(table, "cairn-stat."), (Names{"cairn-stat.12.0a", "cairn-stat.15.ff"}));
}

TEST(ListeningSocketsTest, AnEmptyTableHasNone) {
    EXPECT_EQ(listening_sockets("", "cairn-stat."), Names{});
    EXPECT_EQ(listening_sockets("\n\n@\n 00010000 @", "cairn-stat."), Names{});
}

TEST(ShowAnswerTest, LinesBehindTheFirstAreIndented) {
    EXPECT_EQ(show_answer(7, "fio\ncairn0 10.0.0.1\n8 forged\n"), "7 fio\n  cairn0 10.0.0.1\n  8 forged\n");
    EXPECT_EQ(show_answer(7, "fio\n\nends early"), "7 fio\n  \n  ends early\n");
    EXPECT_EQ(show_answer(7, ""), "7 does not answer\n");
}

TEST(ShowAnswerTest, NothingReachesATerminalThatItWouldObey) {
    EXPECT_EQ(show_answer(7, "a\x1b[2J\r\x7f\n\xc2\x9b\x80~ \n"), "7 a?[2J??\n  ???~ \n");
}

}  // namespace
}  // namespace cairn::launch
