// Typed methods: request types whose requests and responses are plain values instead of bytes.
//
//     constexpr rpc::Method<Key, Value> kGet{7};
//     rpc::serve<kGet, &Store::get>(endpoint, store);                        // Value Store::get(const Key&)
//     rpc::Typed<Value> got = co_await rpc::invoke(endpoint, session, kGet, key, now);
//
// A value is sent as it lies in memory. Both ends must agree on its layout and byte order.
#pragma once

#include <cstring>
#include <optional>
#include <type_traits>

#include "rpc/common/coroutine.hpp"

namespace cairn::rpc {

template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_pointer_v<T>;

template <PlainValue RequestValue, PlainValue ResponseValue>
struct Method {
    using In = RequestValue;
    using Out = ResponseValue;
    std::uint8_t type;
};

// Returns nothing if `bytes` has another size than the value.
template <PlainValue T>
[[nodiscard]] std::optional<T> value_of(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() != sizeof(T)) {
        return std::nullopt;
    }
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

// How a typed call ended. It has a `value` if `status` is Ok. BadResponse: the response has another size.
template <PlainValue T>
struct Typed {
    CallStatus status = CallStatus::Ok;
    std::optional<T> value{};
    Duration latency{};
};
template <PlainValue T>
[[nodiscard]] Typed<T> typed(const CallResult& result) noexcept {
    if (result.status != CallStatus::Ok) {
        return {result.status, std::nullopt, result.latency};
    }
    const std::optional<T> value = value_of<T>(result.response);
    return {value ? CallStatus::Ok : CallStatus::BadResponse, value, result.latency};
}

// Returns a call of the method without a completion. The caller adds one, which reads the result by typed<Out>().
// `request` must live until the completion runs.
template <PlainValue In, PlainValue Out>
[[nodiscard]] Call call_of(const Method<In, Out>& method, const In& request) noexcept {
    Call call;
    call.type = method.type;
    call.request = {reinterpret_cast<const std::uint8_t*>(&request), sizeof(In)};
    return call;
}

// The awaiter of co_await invoke(). It posts the call and yields Typed<Out>. It keeps a copy of `request`.
template <Caller Endpoint, PlainValue In, PlainValue Out>
class TypedAwaiter {
public:
    TypedAwaiter(Endpoint& endpoint, SessionId session, const Method<In, Out>& method, const In& request,
                 const Instant& now, Instant deadline) noexcept
        : request_(request), inner_(endpoint, session, with(call_of(method, request_), deadline), now, nullptr) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiting) noexcept { return inner_.await_suspend(waiting); }
    [[nodiscard]] Typed<Out> await_resume() const noexcept { return typed<Out>(inner_.await_resume()); }

private:
    [[nodiscard]] static Call with(Call call, Instant deadline) noexcept {
        call.deadline = deadline;
        return call;
    }
    In request_;
    CallAwaiter<Endpoint> inner_;
};
template <Caller Endpoint, PlainValue In, PlainValue Out>
[[nodiscard]] TypedAwaiter<Endpoint, In, Out> invoke(Endpoint& endpoint, SessionId session,
                                                     const Method<In, Out>& method, const In& request,
                                                     const Instant& now, Instant deadline = Instant::never()) noexcept {
    return {endpoint, session, method, request, now, deadline};
}

// Answers a request with a value. Returns false if the session has ended or there is no room.
template <class Endpoint, PlainValue Out>
bool answer(const Request<Endpoint>& request, const Out& value) noexcept {
    const std::span<const std::uint8_t> message{reinterpret_cast<const std::uint8_t*>(&value), sizeof(Out)};
    return request.endpoint.answer(request.handle, message, request.now);
}

// Registers `Out (Owner::*kFunction)(const In&)` as the method's handler. A request of another size is refused, and its
// call ends with AnswerLost. `owner` outlives the endpoint.
template <auto kMethod, auto kFunction, class Endpoint, class Owner>
void serve(Endpoint& endpoint, Owner& owner) noexcept {
    using In = typename decltype(kMethod)::In;
    using Out = typename decltype(kMethod)::Out;
    endpoint.set_handler(
        kMethod.type,
        [](void* context, const Request<Endpoint>& request) {
            const std::optional<In> value = value_of<In>(request.payload);
            if (!value) {
                request.endpoint.refuse(request.handle, request.now);
                return;
            }
            const Out out = (static_cast<Owner*>(context)->*kFunction)(*value);
            answer(request, out);
        },
        &owner, sizeof(Out));
}

}  // namespace cairn::rpc
