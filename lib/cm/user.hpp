// Who is told of connections: the user that listens, connects or asks.
#pragma once

#include "lib/base/time.hpp"
#include "lib/cm/events.hpp"

namespace cairn::cm {

// Each name (ConnectionId, DatagramId) and each service has one, given when it was made. Told on the thread that drives
// the manager, outside of the manager's own calls: it may call whatever it likes.
class User {
public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual void on_event(const Event& event, Instant now) = 0;

protected:
    ~User() = default;
};

}  // namespace cairn::cm
