// The slots of a loaded object: rdmacm_slots, which is linked to this program.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "lib/rdmacm/object_slots.hpp"

// The program's function comes first in the global scope, as our librdmacm's functions do.
extern "C" int slots_own() {
    return 2;
}
extern "C" int slots_call_own();
extern "C" int slots_call_other();

namespace cairn::rdmacm {
namespace {

[[nodiscard]] int answer_otherwise() {
    return -77;
}

TEST(RdmacmObjectSlotsTest, AnObjectCallsItsOwnAndWhatIsRedirected) {
    Dl_info info{};
    link_map* object = nullptr;
    ASSERT_NE(
        dladdr1(reinterpret_cast<void*>(slots_call_own), &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP), 0);
    ASSERT_EQ(slots_call_own(), 2);
    ASSERT_EQ(slots_call_other(), getppid());
    EXPECT_TRUE(imports(*object, "getppid"));
    EXPECT_FALSE(imports(*object, "slots_own"));
    EXPECT_FALSE(imports(*object, "getpp"));

    const std::array redirects{Redirect{"getppid", reinterpret_cast<void*>(answer_otherwise)},
                               Redirect{"slots_own", reinterpret_cast<void*>(answer_otherwise)}};
    ASSERT_TRUE(bind_own(*object, redirects));
    EXPECT_EQ(slots_call_own(), 1);
    EXPECT_EQ(slots_call_other(), -77);
    EXPECT_EQ(slots_own(), 2);  // the program's function
    EXPECT_NE(getppid(), -77);
}

}  // namespace
}  // namespace cairn::rdmacm
