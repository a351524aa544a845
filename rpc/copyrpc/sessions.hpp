// The sessions of an endpoint.
#pragma once

#include "rpc/copyrpc/session.hpp"
#include "rpc/linked/linked_sessions.hpp"

namespace cairn::copyrpc {

using Sessions = rpc::LinkedSessions<Session>;

}  // namespace cairn::copyrpc
