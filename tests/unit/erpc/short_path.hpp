// Packets of small calls, offered to the short path one by one.
#pragma once

#include <array>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {

constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(RawHeader);

// Offers packets to take_known() by hand, as they came.
class ShortPath : public TwoHosts {
protected:
    // Returns the next request of the session's slot, which has had one, at the server's port. Its call has no
    // deadline, or ends after `lasts`.
    port::PacketRef request(Duration lasts = {}) {
        session = connect();
        run(milliseconds(5));
        post(session, 1);
        run(milliseconds(5));
        second = post(session, 2, lasts == Duration{} ? Instant::never() : now + lasts).id;
        client.turn(now);
        return arrived(server);
    }
    // Returns the answer to it at the client's port.
    port::PacketRef response(Duration lasts = {}) {
        port::PacketRef packet = request(lasts);
        EXPECT_EQ(server.endpoint->take_known({&packet, 1}, now), 1U);
        server.worker->sender().flush(now);
        return arrived(client);
    }
    port::PacketRef arrived(Host& at) const {
        std::array<port::PacketRef, 4> burst;
        EXPECT_EQ(at.port.receive_burst(burst, now), 1U);
        return burst[0];
    }
    bool takes(Host& host, port::PacketRef packet) {
        const bool taken = host.endpoint->take_known({&packet, 1}, now) == 1;
        host.endpoint->check_invariants();
        return taken;
    }

    SessionId session{};
    CallId second = 0;
};

}  // namespace cairn::erpc
