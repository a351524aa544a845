// The places where the distribution's library is looked for.
#include <gtest/gtest.h>

#include "lib/rdmacm/distribution.hpp"

namespace cairn::rdmacm {
namespace {

TEST(RdmacmDistributionTest, TheLibraryIsLookedForInEachFolderInTurn) {
    const std::vector<std::string> wanted{"/ours/librdmacm.so.1", "/usr/lib/librdmacm.so.1"};
    EXPECT_EQ(distribution_files(nullptr, {"/ours", "/usr/lib"}), wanted);
    EXPECT_TRUE(distribution_files(nullptr, {}).empty());
}

TEST(RdmacmDistributionTest, AFileThatIsNamedIsTheOnlyOne) {
    EXPECT_EQ(distribution_files("/opt/rdmacm.so", {"/usr/lib"}), std::vector<std::string>{"/opt/rdmacm.so"});
}

}  // namespace
}  // namespace cairn::rdmacm
