// A client and a server of eRPC on a wire in memory, in virtual time, and the calls that cairn-rpcbench makes there.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "apps/rpcbench/load.hpp"
#include "tests/unit/erpc/host.hpp"

namespace cairn::rpcbench {

class BenchHosts : public testing::Test {
protected:
    BenchHosts() {
        client.port.join(server.port);
        server.port.join(client.port);
    }
    void begin(std::unique_ptr<Load> calls) {
        load = std::move(calls);
        ASSERT_TRUE(load->prepare().ok());
        load->start(sessions, now, now);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + step) {
            if (load != nullptr) {
                (void)load->on_turn(now);
            }
            client.turn(now);
            if (!halted) {
                server.turn(now);
            }
        }
    }
    void finish() {
        load->stop(now);
        run(milliseconds(50));
        load->give_up(client.endpoint->calls_pending());
    }

    std::unique_ptr<Load> load;  // ends after the endpoints
    erpc::Host client{"10.0.0.1", 11};
    erpc::Host server{"10.0.0.2", 22};
    Instant now{1'000'000'000};
    Duration step = microseconds(50);
    Options options;
    std::vector<SessionId> sessions;
    bool halted = false;
};

}  // namespace cairn::rpcbench
