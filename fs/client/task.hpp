// Coroutines that make up the client's operations.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "fs/client/frame_pool.hpp"

namespace cairn::fs {

// Called with the result of a task that was started.
template <class T>
using Done = void (*)(void* context, T result);

// A coroutine. It runs nothing before it is awaited or started. It runs on one thread.
template <class T>
class [[nodiscard]] Task {
public:
    struct promise_type;  // NOLINT(readability-identifier-naming): the language's name
    using Frame = std::coroutine_handle<promise_type>;

    // Resumes the coroutine that awaits the task. If there is none, ends the frame and then calls `done`.
    struct Last {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        [[nodiscard]] std::coroutine_handle<> await_suspend(Frame ended) const noexcept {
            promise_type& promise = ended.promise();
            if (promise.awaited_by) {
                return promise.awaited_by;
            }
            const Done<T> done = promise.done;
            void* const context = promise.context;
            T result = std::move(promise.result);
            ended.destroy();
            if (done != nullptr) {
                done(context, std::move(result));
            }
            return std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    struct promise_type {
        static void* operator new(std::size_t bytes) noexcept { return FramePool::take(bytes); }
        static void operator delete(void* frame, std::size_t bytes) noexcept { FramePool::give(frame, bytes); }
        [[nodiscard]] static Task get_return_object_on_allocation_failure() noexcept { std::terminate(); }

        [[nodiscard]] Task get_return_object() noexcept { return Task(Frame::from_promise(*this)); }
        [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
        [[nodiscard]] Last final_suspend() const noexcept { return {}; }
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
        void return_value(T value) noexcept { result = std::move(value); }

        T result{};
        std::coroutine_handle<> awaited_by{};  // empty if the task was started
        Done<T> done = nullptr;
        void* context = nullptr;
    };

    Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task() {
        if (frame_) {
            frame_.destroy();
        }
    }

    // The awaiting coroutine resumes with the result. Only a temporary can be awaited, so that the frame lives as long
    // as the awaiting expression.
    [[nodiscard]] auto operator co_await() && noexcept {
        struct Awaiter {
            Frame frame;
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> by) const noexcept {
                frame.promise().awaited_by = by;
                return frame;
            }
            [[nodiscard]] T await_resume() const noexcept { return std::move(frame.promise().result); }
        };
        return Awaiter{frame_};
    }

    // Runs the task until it first waits. The task then goes on by itself. It calls `done` at its end, which may be
    // before start() returns.
    void start(Done<T> done, void* context) && noexcept {
        frame_.promise().done = done;
        frame_.promise().context = context;
        std::exchange(frame_, {}).resume();
    }

private:
    explicit Task(Frame frame) noexcept : frame_(frame) {}

    Frame frame_;
};

}  // namespace cairn::fs
