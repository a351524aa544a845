// co_await for RPC: a coroutine can await calls, and a handler can be a coroutine.
//
//     Task<> relay(void* context, Request<Endpoint> request) {  // answers with what another server says
//         auto& self = *static_cast<Relay*>(context);
//         self.question.assign(request.payload.begin(), request.payload.end());
//         const CallResult inner = co_await call(request.endpoint, self.session, self.ask(), self.now);
//         ...reserve(request.handle, ...), copy inner.response, respond(request.handle, self.now)
//     }
//     endpoint.set_handler(kRelay, coroutine_handler<&relay, Endpoint>, &self);
//
// Coroutines run on the endpoint's thread, inside its inputs. Operator new allocates the frame when a coroutine is
// called. Awaiting a call allocates nothing. Without memory the process ends. The destructor of an endpoint resumes all
// coroutines that wait for its answers, with Disconnected.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "lib/base/assert.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"
#include "rpc/common/result_awaiter.hpp"

namespace cairn::rpc {

template <class T = void>
class Task;

// The common base of the promises of all tasks. A task runs nothing before start() or co_await. At its end it resumes
// the coroutine that awaits it; a detached task destroys its frame.
class TaskPromise {
public:
    struct Last {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
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

    std::coroutine_handle<> awaited_by{};  // empty if the task is detached
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

// A task that has not begun, or is awaited. It owns the frame until it is detached.
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

    // Begins the task when awaited. The awaiting coroutine resumes with the result when the task ends. Only a temporary
    // can be awaited, so the frame lives as long as the awaiting expression.
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

    // Runs the task until it first waits. Then it goes on by itself, and frees its frame at its end.
    void detach() && noexcept requires std::is_void_v<T> { std::exchange(frame_, {}).resume(); }

private:
    explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

// Begins a task and detaches it.
inline void start(Task<> task) noexcept {
    std::move(task).detach();
}

// The functions of an RPC endpoint that co_await call() needs. The completion of a call never runs inside post().
template <class T>
concept Caller = requires(T& endpoint, SessionId session, const Call& call, Instant now) {
    { endpoint.post(session, call, now) } -> std::same_as<Posted>;
};

// The awaiter of co_await call().
template <Caller Endpoint>
class CallAwaiter : public ResultAwaiter {
public:
    CallAwaiter(Endpoint& endpoint, SessionId session, const Call& call, const Instant& now, CallId* id) noexcept
        : endpoint_(endpoint), session_(session), call_(call), now_(now), id_(id) {}

    // Returns false if the call was not posted; the coroutine then goes on at once.
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiting) noexcept {
        expect(call_, waiting);
        const Posted posted = endpoint_.post(session_, call_, now_);
        if (posted.verdict != PostVerdict::Posted) {
            end_at_once(posted.verdict, call_.tag);
            return false;
        }
        if (id_ != nullptr) {
            *id_ = posted.id;
        }
        return true;
    }

private:
    Endpoint& endpoint_;
    SessionId session_;
    Call call_;
    const Instant& now_;
    CallId* id_;
};

// Posts `what` when awaited, and yields its CallResult. The completion, context and ends_with_endpoint of `what` are
// not used. The result's `response` is valid until the coroutine next waits or ends. A call that is not posted ends at
// once with TableFull, RequestTooLong or Disconnected. `now` is read when the call is posted. `*id`, if given, is set
// for cancel(), which resumes the coroutine.
template <Caller Endpoint>
[[nodiscard]] CallAwaiter<Endpoint> call(Endpoint& endpoint, SessionId session, const Call& what, const Instant& now,
                                         CallId* id = nullptr) noexcept {
    return {endpoint, session, what, now, id};
}

// Runs `handling`. If it ends without an answer, the request is refused.
inline Task<> answered_or_dropped(Task<> handling, KeptRequest /*request*/) {
    co_await std::move(handling);
}

// Makes a Handler of `Task<> Function(void* context, Request<Endpoint> request)`. The request's payload and `now` are
// valid until Function first waits. Its handle stays valid until the session ends; then reserve() gives no room. If
// Function ends without an answer, the request is refused.
template <auto Function, class Endpoint>
void coroutine_handler(void* context, const Request<Endpoint>& request) noexcept {
    RequestKeeper& keeper = request.keeper;
    const RequestHandle handle = request.handle;
    start(answered_or_dropped(Function(context, request), KeptRequest(keeper, handle)));
    keeper.keep(handle);  // it may wait now
}

}  // namespace cairn::rpc
