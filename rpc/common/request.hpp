// What a server's handlers get, in every RPC system of Cairn: requests, and handles to answer them by.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/base/types.hpp"

namespace cairn::rpc {

// Names a request to answer later. The end of its session makes it stale: it then names nothing, without harm.
struct RequestHandle {
    SessionId session{};
    std::uint64_t request_number = 0;
};

// A request as its handler sees it. The payload lies in the receive buffer: it is valid until the handler returns or
// answers, whichever comes first. Endpoint: the RPC system's, with reserve(), respond(), answer() and
// refuse().
template <class Endpoint>
struct Request {
    Endpoint& endpoint;
    RequestHandle handle;
    std::uint8_t type;
    std::span<const std::uint8_t> payload;
    Instant now;
};

// Answers at once (Endpoint::answer, or reserve, then respond), or keeps `handle` and answers later.
template <class Endpoint>
using Handler = void (*)(void* context, const Request<Endpoint>& request);

class BackgroundRequest;
// Runs on a thread of a BackgroundPool, several at a time if the pool has several. The answer leaves when it returns.
using BackgroundHandler = void (*)(void* context, BackgroundRequest& request);

}  // namespace cairn::rpc
