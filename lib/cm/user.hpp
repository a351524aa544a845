// The user of connections: it listens, connects or asks, and gets the events.
#pragma once

#include "lib/base/time.hpp"
#include "lib/cm/events.hpp"

namespace cairn::cm {

// Each name (ConnectionId, DatagramId) and each service has one user, given when it was made. Events are delivered on
// the thread that drives the manager, outside of the manager's own calls. So the user may call anything.
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
