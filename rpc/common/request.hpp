// The arguments of a server's handlers in every RPC system of Cairn: requests, and handles to answer them.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "rpc/common/kept_request.hpp"

namespace cairn::rpc {

// A request as its handler sees it. The payload is valid until the handler returns or answers, whichever comes first.
// `Endpoint` is the RPC system's endpoint, which has reserve(), respond(), answer() and refuse().
template <class Endpoint>
struct Request {
    Endpoint& endpoint;
    RequestKeeper& keeper;
    RequestHandle handle;
    std::uint8_t type;
    std::span<const std::uint8_t> payload;
    Instant now;
    std::uint64_t trace = 0;  // the call's; 0 if there is none, or the RPC system does not carry it

    // Keeps the request, for a handler that answers later.
    [[nodiscard]] KeptRequest keep() const noexcept {
        keeper.keep(handle);
        return {keeper, handle};
    }
    // Declines the request, for a handler that does not take it and has not executed it. Returns false if it was
    // answered.
    bool decline() const noexcept { return keeper.decline(handle); }
};

// A handler answers at once (by answer(), or by reserve() and respond()), refuses or declines. Or it keeps the request
// by keep() and answers later. If it returns without any of these, the endpoint refuses the request: its call ends with
// AnswerLost.
template <class Endpoint>
using Handler = void (*)(void* context, const Request<Endpoint>& request);

class BackgroundRequest;
// A background handler, which runs on a thread of a BackgroundPool. If the pool has several threads, several handlers
// run at a time. The answer is sent after the handler has returned.
using BackgroundHandler = void (*)(void* context, BackgroundRequest& request);

}  // namespace cairn::rpc
