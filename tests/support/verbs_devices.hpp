// Devices of lib/ibverbs for its tests, and the exchange of values between their processes.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/support/loopback.hpp"

namespace cairn::test {

// Configures devices "left", "right" and "spare". Only this process and its children have their addresses. Call it
// first.
inline void configure_devices() {
    static const bool done = [] {
        const std::string devices = "left=" + loopback(1) + ",right=" + loopback(2) + ",spare=" + loopback(3);
        return setenv("CAIRN_DEVICES", devices.c_str(), 1) == 0 && setenv("CAIRN_BROKER", "off", 1) == 0;
    }();
    ASSERT_TRUE(done);
}

// Returns nullptr if there is no such device, or if it cannot be opened.
inline ibv_context* open_device(const std::string& name) {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ibv_context* context = nullptr;
    for (int i = 0; i < count; ++i) {
        context = name == ibv_get_device_name(list[i]) ? ibv_open_device(list[i]) : context;
    }
    ibv_free_device_list(list);
    return context;
}

// Exchanges values with the other end of a socket.
template <class Value>
Value swap_over(int socket, const Value& mine) {
    Value theirs{};
    EXPECT_EQ(write(socket, &mine, sizeof(mine)), static_cast<ssize_t>(sizeof(mine)));
    EXPECT_EQ(read(socket, &theirs, sizeof(theirs)), static_cast<ssize_t>(sizeof(theirs)));
    return theirs;
}

struct Sockets {
    Sockets() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0); }
    Sockets(const Sockets&) = delete;
    Sockets& operator=(const Sockets&) = delete;
    ~Sockets() {
        close(ends[0]);
        close(ends[1]);
    }
    std::array<int, 2> ends{};
};

}  // namespace cairn::test
