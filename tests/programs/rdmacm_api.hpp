// The common part of the tests of rdma_cm's API: two devices of one process.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace rdmacm_test {

// Returns an address of this run; others may run at the same time.
inline std::string address_of(int host) {
    const int pid = getpid();
    return "127." + std::to_string(pid / 250 % 250 + 1) + '.' + std::to_string(pid % 250) + '.' + std::to_string(host);
}
inline const std::string kLeft = address_of(4);
inline const std::string kRight = address_of(5);
inline const std::string kNoDevice = address_of(6);

// The peer that a test starts has devices of its own.
inline const bool kConfigured = [] {
    setenv("CAIRN_DEVICES", ("left=" + kLeft + ",right=" + kRight).c_str(), 0);
    return true;
}();

struct Address {
    Address(const std::string& text, int port) {
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<std::uint16_t>(port));
        inet_pton(AF_INET, text.c_str(), &in.sin_addr);
    }
    [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&in); }
    sockaddr_in in{};
};

// Errors of calls that must fail.
#define EXPECT_FAILS(call, reason)  \
    do {                            \
        errno = 0;                  \
        EXPECT_EQ((call), -1);      \
        EXPECT_EQ(errno, (reason)); \
    } while (false)

struct ChannelEnd {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using ChannelPtr = std::unique_ptr<rdma_event_channel, ChannelEnd>;
struct IdEnd {
    void operator()(rdma_cm_id* id) const {
        if (id->qp != nullptr) {
            rdma_destroy_qp(id);
        }
        EXPECT_EQ(rdma_destroy_id(id), 0);
    }
};
using IdPtr = std::unique_ptr<rdma_cm_id, IdEnd>;

// An event that is acknowledged at the end of its scope.
class Told {
public:
    explicit Told(rdma_event_channel* channel) { EXPECT_EQ(rdma_get_cm_event(channel, &event_), 0); }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    ~Told() { rdma_ack_cm_event(event_); }
    rdma_cm_event* operator->() const { return event_; }
    [[nodiscard]] std::string text() const { return static_cast<const char*>(event_->param.conn.private_data); }

private:
    rdma_cm_event* event_ = nullptr;
};

// Starts another process, which runs the test of that name with RDMACM_TEST_TO and RDMACM_TEST_PORT.
inline pid_t start_peer(const std::string& test, const std::string& devices, const std::string& to, int port) {
    const pid_t peer = fork();
    if (peer == 0) {
        setenv("CAIRN_DEVICES", devices.c_str(), 1);
        setenv("RDMACM_TEST_TO", to.c_str(), 1);
        setenv("RDMACM_TEST_PORT", std::to_string(port).c_str(), 1);
        const std::string filter = "--gtest_filter=*" + test;
        execl("/proc/self/exe", "peer", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
        _exit(1);
    }
    return peer;
}

class RdmacmApiTest : public testing::Test {
protected:
    RdmacmApiTest() : channel_(rdma_create_event_channel()) {}

    [[nodiscard]] IdPtr make(rdma_port_space space = RDMA_PS_TCP) const {
        rdma_cm_id* id = nullptr;
        EXPECT_EQ(rdma_create_id(channel_.get(), &id, this_context(), space), 0);
        return IdPtr(id);
    }
    [[nodiscard]] void* this_context() const { return const_cast<RdmacmApiTest*>(this); }
    [[nodiscard]] IdPtr listener(const std::string& at, rdma_port_space space = RDMA_PS_TCP) const {
        IdPtr id = make(space);
        Address address(at, 0);
        EXPECT_EQ(rdma_bind_addr(id.get(), address.get()), 0);
        EXPECT_EQ(rdma_listen(id.get(), 8), 0);
        return id;
    }
    // Returns an id that has resolved its route to `port` at `to`.
    [[nodiscard]] IdPtr resolved(const std::string& to, int port, rdma_port_space space = RDMA_PS_TCP) const {
        IdPtr id = make(space);
        Address source(kLeft, 0);
        Address destination(to, port);
        EXPECT_EQ(rdma_resolve_addr(id.get(), source.get(), destination.get(), 1000), 0);
        expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
        expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
        return id;
    }
    void expect(rdma_cm_event_type type, int status = 0) const {
        const Told told(channel_.get());
        EXPECT_EQ(told->event, type) << rdma_event_str(told->event);
        EXPECT_EQ(told->status, status);
    }
    static void make_qp(rdma_cm_id* id, ibv_qp_type type = IBV_QPT_RC) {
        ibv_qp_init_attr wanted{};
        wanted.cap = {4, 4, 1, 1, 0};
        wanted.qp_type = type;
        ASSERT_EQ(rdma_create_qp(id, nullptr, &wanted), 0) << std::strerror(errno);
    }
    [[nodiscard]] static int port_of(const IdPtr& id) { return ntohs(rdma_get_src_port(id.get())); }
    // Returns the id of the next request.
    [[nodiscard]] IdPtr request(const IdPtr& from) const {
        const Told told(channel_.get());
        EXPECT_EQ(told->event, RDMA_CM_EVENT_CONNECT_REQUEST) << rdma_event_str(told->event);
        EXPECT_EQ(told->listen_id, from.get());
        EXPECT_EQ(told->id->context, from->context);
        return IdPtr(told->id);
    }

    const ChannelPtr channel_;
};

}  // namespace rdmacm_test
