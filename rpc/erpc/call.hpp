// What an application gives to an endpoint and gets from it: calls, their results, requests to answer.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/control.hpp"

namespace cairn::erpc {

enum class CallStatus : std::uint8_t {
    Ok,
    DeadlinePassed,
    Cancelled,
    Disconnected,
    PeerLost,
    ResponseTooLong,
    NoHandler,       // the server knows no such type
    AnswerLost,      // the request was executed, but its answer is not to be had: the server refused one, or let it go
    TableFull,       // only of co_await call(): the call was not posted
    RequestTooLong,  // the same, or its server takes none so long
};

// How a call ended. `response` lies in the receive buffer (or in the call's response buffer when it gave
// one) and is valid until the callback returns.
struct CallResult {
    CallStatus status = CallStatus::Ok;
    std::span<const std::uint8_t> response{};
    Duration latency{};
    std::uint64_t tag = 0;
};

using Completion = void (*)(void* context, const CallResult& result);

// One call. `request` must stay as it is until the completion runs: it may be sent again, and a large one that
// lies in memory the port can send from is not copied.
struct Call {
    std::uint8_t type = 0;
    std::span<const std::uint8_t> request{};
    rpc::MsgBuffer* response = nullptr;  // copied here when given; `bytes` is set
    Completion completion = nullptr;
    void* context = nullptr;
    std::uint64_t tag = 0;
    Instant deadline = Instant::never();
    bool ends_with_endpoint = false;  // completes with Disconnected when the endpoint is destroyed; else is forgotten
};

using CallId = std::uint64_t;  // 0: none

enum class PostVerdict : std::uint8_t { Posted, NoSuchSession, Full, TooLong };
struct Posted {
    PostVerdict verdict = PostVerdict::Posted;
    CallId id = 0;
};

class Endpoint;

// Names a request to answer later; goes stale without harm when its session ends.
struct RequestHandle {
    SessionId session{};
    std::uint64_t request_number = 0;
};

// A request as its handler sees it. The payload is in the receive buffer: valid until the handler returns or
// answers, whichever is first.
struct Request {
    Endpoint& endpoint;
    RequestHandle handle;
    std::uint8_t type;
    std::span<const std::uint8_t> payload;
    Instant now;
};

// Answers at once (Endpoint::reserve, then respond) or keeps `handle` and answers later.
using Handler = void (*)(void* context, const Request& request);

class BackgroundRequest;
// Runs on a thread of a BackgroundPool, several at a time if it has several; the answer leaves when it returns.
using BackgroundHandler = void (*)(void* context, BackgroundRequest& request);

enum class SessionEvent : std::uint8_t { Connected, Refused, Disconnected, PeerLost };
using SessionCallback = void (*)(void* context, SessionId session, SessionEvent event, RefuseReason reason);

}  // namespace cairn::erpc
