// eRPC's names for the types that all RPC systems share, and the events of a session.
#pragma once

#include <cstdint>

#include "rpc/common/background.hpp"
#include "rpc/common/coroutine.hpp"
#include "rpc/common/deadlines.hpp"
#include "rpc/erpc/control.hpp"

namespace cairn::erpc {

using rpc::BackgroundConfig;
using rpc::BackgroundHandler;
using rpc::BackgroundPool;
using rpc::BackgroundRequest;
using rpc::call;
using rpc::Call;
using rpc::CallId;
using rpc::CallResult;
using rpc::CallStatus;
using rpc::Completion;
using rpc::coroutine_handler;
using rpc::Deadlines;
using rpc::kNone;
using rpc::Posted;
using rpc::PostVerdict;
using rpc::RequestHandle;
using rpc::start;
using rpc::Task;

enum class SessionEvent : std::uint8_t { Connected, Refused, Disconnected, PeerLost };
// Called on the endpoint's thread for events of client sessions. `reason` says why a session was refused. For a lost
// peer it is PathTooNarrow or None.
using SessionCallback = void (*)(void* context, SessionId session, SessionEvent event, RefuseReason reason);

}  // namespace cairn::erpc
