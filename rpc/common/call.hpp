// Calls and their results, as clients of every RPC system of Cairn post and get them.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "rpc/common/msg_buffer.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kNone = 0xffffffffU;  // no call, no session, no packet

enum class CallStatus : std::uint8_t {
    Ok,
    DeadlinePassed,
    Cancelled,
    Disconnected,
    PeerLost,
    ResponseTooLong,
    NoHandler,       // the server has no handler for the request's type
    AnswerLost,      // the request was executed, but its handler refused to answer or the server gave the answer up
    NotExecuted,     // the server's handler takes no such request
    TableFull,       // only from co_await call(): the call was not posted
    RequestTooLong,  // the server takes no request of this size; from co_await call() also: the call was not posted
    BadResponse,     // only from typed calls: the response is no value of the method's type
};

// The result of a call. `response` is valid until the completion returns. It lies in the call's response buffer if the
// call has one, else in memory of the endpoint.
struct CallResult {
    CallStatus status = CallStatus::Ok;
    std::span<const std::uint8_t> response{};
    Duration latency{};  // from post() on, also while the call waited for its session, for room or for credits
    std::uint64_t tag = 0;
};

using Completion = void (*)(void* context, const CallResult& result);

// One call. `request` must not change until the completion runs: it may be sent again. A large request is not copied if
// the port can send from its memory.
struct Call {
    std::uint8_t type = 0;
    std::span<const std::uint8_t> request{};
    MsgBuffer* response = nullptr;  // if given, the response is put here, and `bytes` is set
    Completion completion = nullptr;
    void* context = nullptr;
    std::uint64_t tag = 0;
    Instant deadline = Instant::never();
    std::uint64_t trace = 0;          // the larger work that the call belongs to, for the server's handler
    bool ends_with_endpoint = false;  // true: the endpoint's end completes it with Disconnected; false: forgets it
};

using CallId = std::uint64_t;  // 0: none

enum class PostVerdict : std::uint8_t { Posted, NoSuchSession, Full, TooLong };
struct Posted {
    PostVerdict verdict = PostVerdict::Posted;
    CallId id = 0;
};

}  // namespace cairn::rpc
