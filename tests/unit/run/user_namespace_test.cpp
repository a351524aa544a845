#include "apps/run/user_namespace.hpp"

#include <gtest/gtest.h>

namespace cairn::launch {
namespace {

TEST(UserNamespace, IsAPlaceForUsersOfNoRights) {
    EXPECT_EQ(judge_user_namespace({1000, 65534, false}, false), nullptr);
    EXPECT_EQ(judge_user_namespace({0, 65534, false}, false), nullptr);
}

TEST(UserNamespace, TakesRightsOnlyFromWhoAskedForIt) {
    EXPECT_NE(judge_user_namespace({0, 65534, true}, false), nullptr);
    EXPECT_EQ(judge_user_namespace({0, 65534, true}, true), nullptr);
}

TEST(UserNamespace, IsNoPlaceForWhomAllOthersSeemToBe) {
    EXPECT_NE(judge_user_namespace({65534, 65534, false}, true), nullptr);
    EXPECT_NE(judge_user_namespace({7, 7, false}, false), nullptr);
}

}  // namespace
}  // namespace cairn::launch
