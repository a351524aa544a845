// What a client posts and gets back, in every RPC system of Cairn: calls and their results.
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
    NoHandler,       // the server knows no such type
    AnswerLost,      // the request was executed, but its answer is not to be had: the server refused one, or let it go
    TableFull,       // only of co_await call(): the call was not posted
    RequestTooLong,  // the same, or its server takes none so long
    BadResponse,     // only of typed calls: the response has another size than the method says
};

// How a call ended. `response` lies in the receive buffer, or in the call's response buffer if the call has one. It is
// valid until the completion returns.
struct CallResult {
    CallStatus status = CallStatus::Ok;
    std::span<const std::uint8_t> response{};
    Duration latency{};
    std::uint64_t tag = 0;
};

using Completion = void (*)(void* context, const CallResult& result);

// One call. `request` must not change until the completion runs: it may be sent again, and a large one that lies in
// memory the port can send from is not copied.
struct Call {
    std::uint8_t type = 0;
    std::span<const std::uint8_t> request{};
    MsgBuffer* response = nullptr;  // the response is copied here if given; `bytes` is set
    Completion completion = nullptr;
    void* context = nullptr;
    std::uint64_t tag = 0;
    Instant deadline = Instant::never();
    bool ends_with_endpoint = false;  // the end of the endpoint completes the call with Disconnected, or forgets it
};

using CallId = std::uint64_t;  // 0: none

enum class PostVerdict : std::uint8_t { Posted, NoSuchSession, Full, TooLong };
struct Posted {
    PostVerdict verdict = PostVerdict::Posted;
    CallId id = 0;
};

}  // namespace cairn::rpc
