// Ports of programs that share an address: the broker assigns them.
#include <dirent.h>
#include <signal.h>

#include <fstream>

#include "tests/programs/rdmacm_api.hpp"

namespace rdmacm_test {
namespace {

// Returns the process that is the broker of the address, or 0 if there is none.
pid_t broker_of(const std::string& address) {
    const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc"), closedir);
    while (const dirent* const each = readdir(all.get())) {
        std::ifstream file(std::string("/proc/") + each->d_name + "/cmdline");
        std::string program;
        std::string local;
        if (std::getline(file, program, '\0') && std::getline(file, local, '\0') && local == address &&
            program.find("cairn-broker") != std::string::npos) {
            return static_cast<pid_t>(std::atoi(each->d_name));
        }
    }
    return 0;
}

TEST_F(RdmacmApiTest, ABrokerThatDoesNotAnswerGivesNoPort) {
    const IdPtr first = listener(kLeft);
    const pid_t broker = broker_of(kLeft);
    ASSERT_NE(broker, 0);
    const IdPtr second = make();
    Address any(kLeft, 0);
    ASSERT_EQ(kill(broker, SIGSTOP), 0);
    EXPECT_FAILS(rdma_bind_addr(second.get(), any.get()), ETIMEDOUT);
    ASSERT_EQ(kill(broker, SIGCONT), 0);
    EXPECT_EQ(rdma_bind_addr(second.get(), any.get()), 0);
}

TEST_F(RdmacmApiTest, ABrokerThatDiesIsFollowedByOneThatGivesThePort) {
    const IdPtr first = listener(kLeft);
    const pid_t broker = broker_of(kLeft);
    ASSERT_NE(broker, 0);
    const IdPtr second = make();
    Address any(kLeft, 0);
    ASSERT_EQ(kill(broker, SIGSTOP), 0);
    std::thread kills([broker] {
        usleep(20'000);  // by then the claim waits, or it is made later
        kill(broker, SIGKILL);
    });
    EXPECT_EQ(rdma_bind_addr(second.get(), any.get()), 0);
    kills.join();
    EXPECT_NE(broker_of(kLeft), broker);
    EXPECT_EQ(rdma_listen(second.get(), 8), 0);
}

void share_port(const IdPtr& id) {
    int flag = 1;
    ASSERT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &flag, sizeof(flag)), 0);
}

// Another program of the address. It may have the port and not listen on it.
TEST_F(RdmacmApiTest, DISABLED_PeerThatShares) {
    const IdPtr id = make();
    share_port(id);
    Address shared(std::getenv("RDMACM_TEST_TO"), std::atoi(std::getenv("RDMACM_TEST_PORT")));
    ASSERT_EQ(rdma_bind_addr(id.get(), shared.get()), 0);
    EXPECT_FAILS(rdma_listen(id.get(), 8), EADDRINUSE);
}

TEST_F(RdmacmApiTest, WhoListensToASharedPortHasItAlone) {
    const IdPtr id = make();
    share_port(id);
    Address any(kLeft, 0);
    ASSERT_EQ(rdma_bind_addr(id.get(), any.get()), 0);
    const pid_t peer = start_peer("PeerThatShares", "left=" + kLeft, kLeft, port_of(id));
    int status = 1;
    ASSERT_EQ(waitpid(peer, &status, 0), peer);
    EXPECT_EQ(status, 0);
    int listens = -1;
    for (int tries = 0; listens != 0 && tries < 1000; ++tries) {  // until the broker has noticed the other program's
                                                                  // end
        listens = rdma_listen(id.get(), 8);
        usleep(5'000);
    }
    EXPECT_EQ(listens, 0);
}

TEST_F(RdmacmApiTest, DISABLED_PeerThatBinds) {
    const IdPtr id = make();
    Address free(std::getenv("RDMACM_TEST_TO"), std::atoi(std::getenv("RDMACM_TEST_PORT")));
    ASSERT_EQ(rdma_bind_addr(id.get(), free.get()), 0);
    EXPECT_EQ(rdma_listen(id.get(), 8), 0);
}

TEST_F(RdmacmApiTest, APortIsFreeAtTheAddressWhereItWasGivenBack) {
    IdPtr ends = listener(kLeft);
    const IdPtr stays = make();
    Address same(kRight, port_of(ends));
    ASSERT_EQ(rdma_bind_addr(stays.get(), same.get()), 0);
    ends.reset();
    const pid_t peer = start_peer("PeerThatBinds", "left=" + kLeft, kLeft, port_of(stays));
    int status = 1;
    ASSERT_EQ(waitpid(peer, &status, 0), peer);
    EXPECT_EQ(status, 0);
}

TEST_F(RdmacmApiTest, APortThatIsListenedToIsNotShared) {
    const IdPtr first = make();
    share_port(first);
    Address any(kLeft, 0);
    ASSERT_EQ(rdma_bind_addr(first.get(), any.get()), 0);
    Address same(kLeft, port_of(first));
    {
        const IdPtr second = make();
        share_port(second);
        ASSERT_EQ(rdma_bind_addr(second.get(), same.get()), 0);
        EXPECT_FAILS(rdma_listen(first.get(), 8), EADDRINUSE);
    }
    EXPECT_EQ(rdma_listen(first.get(), 8), 0);
    const IdPtr late = make();
    share_port(late);
    EXPECT_FAILS(rdma_bind_addr(late.get(), same.get()), EADDRINUSE);
}

[[nodiscard]] sockaddr_in6 any_v6(int port) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    return any;
}

// Binds to any address of IPv6. Returns 0, or errno.
int bind_v6(const IdPtr& id, int port, int own_family) {
    sockaddr_in6 any = any_v6(port);
    EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &own_family, sizeof(own_family)), 0);
    return rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&any)) == 0 ? 0 : errno;
}

// An unspecified IPv4 address covers its own family unless the program says otherwise, as with a kernel.
TEST_F(RdmacmApiTest, AnyAddressMeansThoseOfItsFamilyAlone) {
    const IdPtr of_v4 = make();
    Address any("0.0.0.0", 0);
    ASSERT_EQ(rdma_bind_addr(of_v4.get(), any.get()), 0);
    const int port = port_of(of_v4);
    EXPECT_EQ(bind_v6(make(), port, 0), EADDRINUSE);
    IdPtr of_v6 = make();
    ASSERT_EQ(bind_v6(of_v6, port, 1), 0);
    EXPECT_EQ(bind_v6(make(), port, 1), EADDRINUSE);
    const IdPtr of_both = make();
    int flag = 0;
    ASSERT_EQ(rdma_set_option(of_both.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &flag, sizeof(flag)), 0);
    Address other("0.0.0.0", 0);
    ASSERT_EQ(rdma_bind_addr(of_both.get(), other.get()), 0);
    EXPECT_EQ(bind_v6(make(), port_of(of_both), 1), EADDRINUSE);

    // If one of them ends, the other keeps its port, and its entry at the broker.
    ASSERT_EQ(rdma_listen(of_v4.get(), 8), 0);
    ASSERT_EQ(rdma_listen(of_v6.get(), 8), 0);
    of_v6.reset();
    const IdPtr client = resolved(kRight, port);
    rdma_conn_param wanted{};
    ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
    const IdPtr asked = request(of_v4);
    ASSERT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
    expect(RDMA_CM_EVENT_REJECTED, 28);
    const pid_t peer = start_peer("PeerThatIsRefused", "left=" + kLeft, kLeft, port);
    int status = 1;
    ASSERT_EQ(waitpid(peer, &status, 0), peer);
    EXPECT_EQ(status, 0);
}

TEST_F(RdmacmApiTest, DISABLED_PeerThatIsRefused) {
    const IdPtr id = make();
    Address taken(std::getenv("RDMACM_TEST_TO"), std::atoi(std::getenv("RDMACM_TEST_PORT")));
    EXPECT_FAILS(rdma_bind_addr(id.get(), taken.get()), EADDRINUSE);
}

}  // namespace
}  // namespace rdmacm_test
