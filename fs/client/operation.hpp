// An operation of the file system: waited for, awaited, or told of when it has ended.
#pragma once

#include <cerrno>
#include <utility>

#include "fs/client/outcome.hpp"
#include "fs/client/task.hpp"

namespace cairn::fs {

class ClientThread;

// False while a completion runs: nothing can be waited for there.
[[nodiscard]] bool may_wait(ClientThread& thread) noexcept;
// Sleeps until something has come for the thread, completes that, and returns.
void wait_once(ClientThread& thread) noexcept;

// Belongs to the thread that asked for it, and does nothing before one of these is called, once. Paths and buffers that
// it was given stay until it ends.
template <class T = Nothing>
class [[nodiscard]] Operation {
public:
    Operation(ClientThread& thread, Task<Outcome<T>> task) noexcept : thread_(thread), task_(std::move(task)) {}

    // Blocks. In a completion: EDEADLK.
    Outcome<T> wait() && noexcept {
        if (!may_wait(thread_)) {
            return Failure{EDEADLK};
        }
        struct Waiting {
            bool ended = false;
            Outcome<T> outcome{};
        } waiting;
        std::move(task_).start(
            [](void* context, Outcome<T> outcome) {
                auto& told = *static_cast<Waiting*>(context);
                told.outcome = std::move(outcome);
                told.ended = true;
            },
            &waiting);
        while (!waiting.ended) {
            wait_once(thread_);
        }
        return std::move(waiting.outcome);
    }
    // Calls `done` from Client::poll() of this thread, or at once if there is nothing to wait for.
    void start(Done<Outcome<T>> done, void* context) && noexcept { std::move(task_).start(done, context); }
    // co_await: the coroutine goes on in Client::poll() of this thread.
    [[nodiscard]] auto operator co_await() && noexcept { return std::move(task_).operator co_await(); }

private:
    ClientThread& thread_;
    Task<Outcome<T>> task_;
};

}  // namespace cairn::fs
