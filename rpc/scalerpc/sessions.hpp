// The sessions of an endpoint.
#pragma once

#include "rpc/linked/linked_sessions.hpp"
#include "rpc/scalerpc/session.hpp"

namespace cairn::scalerpc {

using Sessions = rpc::LinkedSessions<Session>;

}  // namespace cairn::scalerpc
