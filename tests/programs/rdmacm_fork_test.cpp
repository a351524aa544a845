// rsockets, and calls of a child of fork() on its parent's sockets.
#include <rdma/rsocket.h>

#include <functional>

#include "tests/programs/rdmacm_api.hpp"

namespace rdmacm_test {
namespace {

class RdmacmForkTest : public testing::Test {
protected:
    // Returns a bound rsocket.
    static int bound(const std::string& at) {
        const int made = rsocket(AF_INET, SOCK_STREAM, 0);
        Address address(at, 0);
        EXPECT_EQ(rbind(made, address.get(), sizeof(address.in)), 0);
        return made;
    }
    void SetUp() override {
        const int probe = rsocket(AF_INET, SOCK_STREAM, 0);
        if (probe < 0 && errno == ENOSYS) {
            GTEST_SKIP() << "the distribution's librdmacm is not installed";
        }
        EXPECT_EQ(rclose(probe), 0);
    }
    // Runs `judge` in a child. An alarm ends a child that hangs.
    static void in_child(const std::function<bool()>& judge) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);
            fill_stack();
            _exit(judge() ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }

private:
    // Fills the stack: stale bytes there would look like an answer if a refused write counted as done.
    [[gnu::noinline]] static void fill_stack() {
        std::array<volatile char, 65536> octets;
        for (volatile char& each : octets) {
            each = 7;
        }
    }
};

TEST_F(RdmacmForkTest, AChildClosesWhatItsParentBound) {
    const int mine = bound(kLeft);
    in_child([mine] { return rclose(mine) == 0; });
    EXPECT_EQ(rclose(mine), 0);
}

TEST_F(RdmacmForkTest, AChildClosesWhatItsParentConnected) {
    const int listens = bound(kRight);
    sockaddr_in there{};
    socklen_t bytes = sizeof(there);
    ASSERT_EQ(rgetsockname(listens, reinterpret_cast<sockaddr*>(&there), &bytes), 0);
    ASSERT_EQ(rlisten(listens, 1), 0);
    std::thread server([listens] {
        const int accepted = raccept(listens, nullptr, nullptr);
        char octet = 0;
        EXPECT_EQ(rrecv(accepted, &octet, 1, 0), 1);
        EXPECT_EQ(octet, 'a');
        EXPECT_EQ(rclose(accepted), 0);
    });
    const int mine = bound(kLeft);
    ASSERT_EQ(rconnect(mine, reinterpret_cast<const sockaddr*>(&there), bytes), 0);
    in_child([mine] { return rclose(mine) == 0; });
    EXPECT_EQ(rsend(mine, "a", 1, 0), 1);  // it is still connected
    server.join();
    EXPECT_EQ(rclose(mine), 0);
    EXPECT_EQ(rclose(listens), 0);
}

TEST_F(RdmacmForkTest, CallsOfAChildFail) {
    const int mine = bound(kLeft);
    in_child([mine] { return rlisten(mine, 1) != 0 && errno == EBADF; });
    EXPECT_EQ(rlisten(mine, 1), 0);
    EXPECT_EQ(rclose(mine), 0);
}

}  // namespace
}  // namespace rdmacm_test
