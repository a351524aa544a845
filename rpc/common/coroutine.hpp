// co_await for RPC: calls that are awaited instead of completed by callback, and handlers that are coroutines.
//
//     Task<> relay(void* context, Request<Endpoint> request) {  // answers with what another server says
//         auto& self = *static_cast<Relay*>(context);
//         self.question.assign(request.payload.begin(), request.payload.end());
//         const CallResult inner = co_await call(request.endpoint, self.session, self.ask(), self.now);
//         ...reserve(request.handle, ...), copy inner.response, respond(request.handle, self.now)
//     }
//     endpoint.set_handler(kRelay, coroutine_handler<&relay, Endpoint>, &self);
//
// All of it runs on the endpoint's thread, inside its inputs. The frame of a coroutine is the only allocation, from
// operator new when the coroutine is called; awaiting a call allocates nothing. Without memory the process ends.
// No frame outlives the endpoint whose answer it waits for: the endpoint's destructor ends the wait with Disconnected.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "lib/base/assert.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"

namespace cairn::rpc {

template <class T = void>
class Task;

// What the promises of all tasks have in common. Lazy: nothing runs before start() or co_await. At its end a task
// goes on with whoever awaits it; a detached one destroys its frame.
class TaskPromise {
public:
    struct Last {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        // mutants: rpc-task-promise-last-await-suspend
        template <class Promise>
        [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
            if (ended.promise().awaited_by) {
                return ended.promise().awaited_by;
            }
            ended.destroy();
            return std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    [[nodiscard]] Last final_suspend() const noexcept { return {}; }
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

    std::coroutine_handle<> awaited_by{};  // none: detached
};

template <class T>
class TaskResult : public TaskPromise {
public:
    void return_value(T value) noexcept { value_ = std::move(value); }
    [[nodiscard]] T take() noexcept { return std::move(*value_); }

private:
    std::optional<T> value_;
};

template <>
class TaskResult<void> : public TaskPromise {
public:
    void return_void() const noexcept {}
    void take() const noexcept {}
};

// A coroutine that was called and not begun, or is awaited. Owns the frame until start() lets go of it.
template <class T>
class [[nodiscard]] Task {
public:
    struct promise_type : TaskResult<T> {  // NOLINT(readability-identifier-naming): the language's name
        [[nodiscard]] Task get_return_object() noexcept {
            return Task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
    };

    Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task() {
        if (frame_) {
            frame_.destroy();
        }
    }

    // Begins it; the awaiting coroutine goes on when it ends, with what it returned. The task is the awaiting
    // expression's own, so that its frame can not go before.
    [[nodiscard]] auto operator co_await() && noexcept {
        struct Awaiter {
            std::coroutine_handle<promise_type> frame;
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> by) const noexcept {
                frame.promise().awaited_by = by;
                return frame;
            }
            [[nodiscard]] T await_resume() const noexcept { return frame.promise().take(); }
        };
        return Awaiter{frame_};
    }

    // Runs it until it first waits. It goes on when what it waits for comes, and frees itself at its end.
    void detach() && noexcept requires std::is_void_v<T> { std::exchange(frame_, {}).resume(); }

private:
    explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

// Begins a task and detaches it.
inline void start(Task<> task) noexcept {
    std::move(task).detach();
}

// An RPC system's endpoint, as far as awaiting a call needs it. post() never completes a call itself.
template <class T>
concept Caller = requires(T& endpoint, SessionId session, const Call& call, Instant now) {
    { endpoint.post(session, call, now) } -> std::same_as<Posted>;
};

// Why a call that was not posted failed.
[[nodiscard]] constexpr CallStatus status_of(PostVerdict verdict) noexcept {
    switch (verdict) {
        case PostVerdict::Full:
            return CallStatus::TableFull;
        case PostVerdict::TooLong:
            return CallStatus::RequestTooLong;
        case PostVerdict::Posted:
        case PostVerdict::NoSuchSession:
            break;
    }
    return CallStatus::Disconnected;
}

// What co_await call() waits on.
template <Caller Endpoint>
class CallAwaiter {
public:
    CallAwaiter(Endpoint& endpoint, SessionId session, const Call& call, const Instant& now, CallId* id) noexcept
        : endpoint_(endpoint), session_(session), call_(call), now_(now), id_(id) {}
    CallAwaiter(const CallAwaiter&) = delete;
    CallAwaiter& operator=(const CallAwaiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    // False, so that the coroutine goes on at once: the call was not taken.
    // mutants: rpc-call-awaiter-await-suspend
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiting) noexcept {
        waiting_ = waiting;
        call_.completion = &CallAwaiter::completed;
        call_.context = this;
        call_.ends_with_endpoint = true;
        const Posted posted = endpoint_.post(session_, call_, now_);
        if (posted.verdict != PostVerdict::Posted) {
            result_ = {status_of(posted.verdict), {}, {}, call_.tag};
            return false;
        }
        if (id_ != nullptr) {
            *id_ = posted.id;
        }
        return true;
    }
    [[nodiscard]] CallResult await_resume() const noexcept { return result_; }

private:
    static void completed(void* context, const CallResult& result) {
        auto& self = *static_cast<CallAwaiter*>(context);
        self.result_ = result;
        self.waiting_.resume();  // ends self
    }

    Endpoint& endpoint_;
    SessionId session_;
    Call call_;
    const Instant& now_;
    CallId* id_;
    CallResult result_{};
    std::coroutine_handle<> waiting_{};
};

// Posts `what` when awaited (its completion and context are not used) and yields its CallResult. `response` is valid
// until the coroutine next waits or ends. A call that is not posted ends at once with TableFull, RequestTooLong or
// Disconnected. `now` is read when the call is posted. `id`, if given, is for cancel(), which resumes the coroutine.
template <Caller Endpoint>
[[nodiscard]] CallAwaiter<Endpoint> call(Endpoint& endpoint, SessionId session, const Call& what, const Instant& now,
                                         CallId* id = nullptr) noexcept {
    return {endpoint, session, what, now, id};
}

// Makes a Handler of `Task<> Function(void* context, Request<Endpoint> request)`. The request's payload and `now` are
// valid until Function first waits. Its handle stays valid across waits until the session ends; reserve() then gives no
// room.
template <auto Function, class Endpoint>
void coroutine_handler(void* context, const Request<Endpoint>& request) noexcept {
    start(Function(context, request));
}

}  // namespace cairn::rpc
