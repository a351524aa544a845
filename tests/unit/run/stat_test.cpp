// Which sockets of the machine answer for programs that use the library.
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

}  // namespace
}  // namespace cairn::launch
