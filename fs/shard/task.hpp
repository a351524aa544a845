// A shard's coroutines, for changes at several shards, step by step.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

// The tasks that have not ended. When this object ends, the tasks that are left are destroyed where they wait.
class Tasks {
public:
    Tasks() = default;
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;
    ~Tasks() {
        while (!running_.empty()) {
            const auto task = *running_.begin();
            running_.erase(running_.begin());
            std::coroutine_handle<>::from_address(task).destroy();
        }
    }
    void add(std::coroutine_handle<> task) { running_.insert(task.address()); }
    void remove(std::coroutine_handle<> task) { running_.erase(task.address()); }
    [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }

private:
    absl::flat_hash_set<void*> running_;
};

// Runs at once, and by itself until it ends. It is a member function of an object that has tasks().
struct LoneTask {
    struct promise_type {
        template <class Owner, class... Arguments>
        explicit promise_type(Owner& owner, Arguments&... /*unused*/) : tasks(owner.tasks()) {
            tasks.add(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        promise_type(const promise_type&) = delete;
        promise_type& operator=(const promise_type&) = delete;
        ~promise_type() { tasks.remove(std::coroutine_handle<promise_type>::from_promise(*this)); }

        LoneTask get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::abort(); }

        Tasks& tasks;
    };
};

// Begins when it is awaited, and yields a value to the awaiting coroutine.
template <class Value>
class Co {
public:
    struct promise_type {
        std::optional<Value> value{};
        std::coroutine_handle<> waiter{};

        Co get_return_object() noexcept { return Co(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct Final {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
                return self.promise().waiter;
            }
            void await_resume() noexcept {}
        };
        Final final_suspend() noexcept { return {}; }
        void return_value(Value result) { value = std::move(result); }
        [[noreturn]] void unhandled_exception() noexcept { std::abort(); }
    };

    Co(Co&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Co(const Co&) = delete;
    Co& operator=(const Co&) = delete;
    Co& operator=(Co&&) = delete;
    ~Co() {
        if (handle_) {
            handle_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
        handle_.promise().waiter = waiter;
        return handle_;
    }
    Value await_resume() {
        CAIRN_ASSERT(handle_.promise().value.has_value());
        return std::move(*handle_.promise().value);
    }

private:
    explicit Co(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace cairn::fs
