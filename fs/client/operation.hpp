// An operation of the file system. Its caller waits for it, awaits it, or gives it a completion.
#pragma once

#include <cerrno>
#include <utility>

#include "fs/client/outcome.hpp"
#include "fs/client/task.hpp"

namespace cairn::fs {

class ClientThread;

// Returns false while a completion runs, since a completion must not wait.
[[nodiscard]] bool may_wait(ClientThread& thread) noexcept;
// Sleeps until an answer has come for the thread, completes it, and returns.
void wait_once(ClientThread& thread) noexcept;

// Belongs to the thread that made it. It does nothing before one of the functions below is called, once. The paths and
// buffers that it was given stay until it ends.
template <class T = Nothing>
class [[nodiscard]] Operation {
public:
    Operation(ClientThread& thread, Task<Outcome<T>> task) noexcept : thread_(thread), task_(std::move(task)) {}

    // Blocks until the operation ends. Returns EDEADLK in a completion.
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
    // Lets a coroutine await the operation. The coroutine goes on in Client::poll() of this thread.
    [[nodiscard]] auto operator co_await() && noexcept { return std::move(task_).operator co_await(); }

private:
    ClientThread& thread_;
    Task<Outcome<T>> task_;
};

}  // namespace cairn::fs
