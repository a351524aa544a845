// Typed methods: request types whose requests and responses are values instead of bytes.
//
//     constexpr rpc::Method<Key, std::string> kGet{7};
//     rpc::serve<kGet, &Store::get>(endpoint, store);                        // std::string Store::get(const Key&)
//     rpc::Typed<std::string> got = co_await rpc::invoke(endpoint, session, kGet, key, now);
//
// Such a value is any type that has a Codec.
#pragma once

#include <optional>

#include "lib/base/result.hpp"
#include "rpc/common/codec.hpp"
#include "rpc/common/coroutine.hpp"

namespace cairn::rpc {

template <Serialisable RequestValue, Serialisable ResponseValue>
struct Method {
    using In = RequestValue;
    using Out = ResponseValue;
    std::uint8_t type;
    // Room that an endpoint keeps for a response before it executes a request (see RequestTypes::set_handler).
    std::uint32_t response_bytes_max = kMostBytesOf<ResponseValue>;
};

// The result of a typed call. It has a `value` if `status` is Ok. BadResponse: the response is no such value.
template <class T>
struct Typed {
    CallStatus status = CallStatus::Ok;
    std::optional<T> value{};
    Duration latency{};  // as in CallResult
};
template <Serialisable T>
[[nodiscard]] Typed<T> typed(const CallResult& result) {
    if (result.status != CallStatus::Ok) {
        return {result.status, std::nullopt, result.latency};
    }
    std::optional<T> value = Codec<T>::get(result.response);
    const CallStatus status = value ? CallStatus::Ok : CallStatus::BadResponse;
    return {status, std::move(value), result.latency};
}

// Returns a call of the method without a completion. The caller adds one, which reads the result by typed<Out>().
// `request` must live until the completion runs.
template <class In, class Out>
[[nodiscard]] Call call_of(const Method<In, Out>& method, const Encoded<In>& request) noexcept {
    Call call;
    call.type = method.type;
    call.request = request.bytes();
    return call;
}

template <class In, class Out>
Call call_of(const Method<In, Out>& method, Encoded<In>&& request) = delete;  // `request` would not live long enough

// The awaiter of co_await invoke(). It posts the call and yields Typed<Out>. It keeps the bytes of `request`.
template <Caller Endpoint, class In, class Out>
class TypedAwaiter {
public:
    TypedAwaiter(Endpoint& endpoint, SessionId session, const Method<In, Out>& method, const In& request,
                 const Instant& now, Instant deadline)
        : request_(request), inner_(endpoint, session, with(call_of(method, request_), deadline), now, nullptr) {}
    TypedAwaiter(const TypedAwaiter&) = delete;
    TypedAwaiter& operator=(const TypedAwaiter&) = delete;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiting) noexcept { return inner_.await_suspend(waiting); }
    [[nodiscard]] Typed<Out> await_resume() const { return typed<Out>(inner_.await_resume()); }

private:
    [[nodiscard]] static Call with(Call call, Instant deadline) noexcept {
        call.deadline = deadline;
        return call;
    }
    const Encoded<In> request_;
    CallAwaiter<Endpoint> inner_;
};
template <Caller Endpoint, class In, class Out>
[[nodiscard]] TypedAwaiter<Endpoint, In, Out> invoke(Endpoint& endpoint, SessionId session,
                                                     const Method<In, Out>& method, const In& request,
                                                     const Instant& now, Instant deadline = Instant::never()) {
    return {endpoint, session, method, request, now, deadline};
}

// Answers a request with a value. Returns false if the session has ended or there is no room.
template <class Endpoint, Serialisable Out>
bool answer(const Request<Endpoint>& request, const Out& value) {
    const std::size_t bytes = Codec<Out>::bytes_of(value);
    if (bytes > kMaxMessageBytes) {
        return false;
    }
    const std::span<std::uint8_t> room = request.endpoint.reserve(request.handle, static_cast<std::uint32_t>(bytes));
    if (room.size() != bytes) {
        return false;
    }
    Codec<Out>::put(value, room);
    return request.endpoint.respond(request.handle, request.now);
}

// Registers `Out (Owner::*kFunction)(const In&)` as the method's handler. A request that is no such value is declined,
// so its call ends with NotExecuted. A request without room for its answer is refused, so its call ends with
// AnswerLost. `owner` outlives the endpoint. Errors: see RequestTypes::set_handler().
template <auto kMethod, auto kFunction, class Endpoint, class Owner>
Status serve(Endpoint& endpoint, Owner& owner) {
    using In = typename decltype(kMethod)::In;
    return endpoint.set_handler(
        kMethod.type,
        [](void* context, const Request<Endpoint>& request) {
            const std::optional<In> value = Codec<In>::get(request.payload);
            if (value) {
                (void)answer(request, (static_cast<Owner*>(context)->*kFunction)(*value));  // else it is refused
            } else {
                (void)request.decline();
            }
        },
        &owner, kMethod.response_bytes_max);
}

}  // namespace cairn::rpc
