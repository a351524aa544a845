// Background handlers: requests whose work takes long are handed to threads of the application's, so that the worker
// goes on polling.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "lib/base/result.hpp"
#include "rpc/common/fixed_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/common/request.hpp"

namespace cairn::rpc {

// One request on its way to a thread and back. All its memory is taken on the worker before it is handed over and
// given back there: MsgPool is the worker's alone, so a response can not grow beyond what its type was registered with.
struct BackgroundJob {
    RequestHandle handle{};
    BackgroundHandler function = nullptr;
    void* context = nullptr;
    MsgBuffer request{};   // a copy, or the very buffer that a large request was put together in
    MsgBuffer response{};  // `bytes`: of the answer
    std::uint32_t response_bytes_max = 0;
    BackgroundJob* next = nullptr;  // of those that wait for a thread
    std::uint8_t type = 0;
};

// A request as a background handler sees it, until it returns. It leads to no endpoint: calls, sessions and other
// answers are the worker's.
class BackgroundRequest {
public:
    explicit BackgroundRequest(BackgroundJob& job) noexcept : job_(job) {}
    BackgroundRequest(const BackgroundRequest&) = delete;
    BackgroundRequest& operator=(const BackgroundRequest&) = delete;

    [[nodiscard]] std::uint8_t type() const noexcept { return job_.type; }
    [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept { return job_.request.span(); }
    // Room for the answer; without it the answer is empty. nullptr and no room: more than the type was registered
    // with. Asked for again, it is the same room with another size.
    [[nodiscard]] std::span<std::uint8_t> reserve(std::uint32_t bytes) noexcept {
        if (bytes > job_.response_bytes_max) {
            return {};
        }
        job_.response.bytes = bytes;
        return job_.response.span();
    }

private:
    BackgroundJob& job_;
};

struct BackgroundConfig {
    std::uint32_t threads = 1;
    bool stepped = false;  // none is started: whoever made the pool plays them by run_one(), in a time of its own
    std::uint32_t jobs_max = 64;
    // More of them wake a busy thread less often; but a job then may wait behind a long one while others are idle.
    std::uint32_t jobs_per_thread = 1;
    void (*wake)(void* context) = nullptr;  // called by the threads after each job, for a worker that may sleep
    void* wake_context = nullptr;           // outlives the pool
};

// The threads, owned by the application; they serve one endpoint at a time, which the pool outlives. A queue each way
// and thread (one producer, one consumer); jobs for which no thread has room wait in order at the worker. There are
// never more jobs than jobs_max: it is having none left that is "full". Idle threads sleep on a futex.
class BackgroundPool {
public:
    // Errors: the system gives no thread, limits out of range.
    static Result<std::unique_ptr<BackgroundPool>> create(const BackgroundConfig& config);
    ~BackgroundPool();
    BackgroundPool(const BackgroundPool&) = delete;
    BackgroundPool& operator=(const BackgroundPool&) = delete;

    // Of a stepped pool: whether this thread has a job, and the oldest of them run here. False: there is none.
    [[nodiscard]] bool has_job(std::uint32_t thread) const noexcept;
    bool run_one(std::uint32_t thread = 0) noexcept;

    // The rest is for the endpoint, on its worker's thread.
    void attach() noexcept;
    // nullptr: all jobs are out.
    [[nodiscard]] BackgroundJob* take() noexcept;
    void give_back(BackgroundJob& job) noexcept;
    void submit(BackgroundJob& job) noexcept;
    // One load when there is none.
    [[nodiscard]] bool any_finished() const noexcept { return finished_.load(std::memory_order_acquire) != taken_; }
    // nullptr: none. A finished job goes back by give_back().
    [[nodiscard]] BackgroundJob* poll_finished() noexcept;
    // Someone has to look for finished jobs from time to time: nothing wakes the worker.
    // mutants: rpc-background-pool-wants-polling
    [[nodiscard]] bool wants_polling() const noexcept { return config_.wake == nullptr && out_ != 0; }
    // The jobs that are out, one by one: those that run when they are finished, which it waits for, the others as they
    // are. nullptr: that was the last.
    [[nodiscard]] BackgroundJob* drain() noexcept;
    void detach() noexcept;  // after drain()

private:
    struct Lane;

    explicit BackgroundPool(const BackgroundConfig& config);
    Status start_threads();
    void dispatch() noexcept;
    void serve(Lane& lane) noexcept;
    bool run_next(Lane& lane) noexcept;
    [[nodiscard]] static bool has_next(const Lane& lane) noexcept;

    BackgroundConfig config_;
    FixedTable<BackgroundJob> jobs_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    bool attached_ = false;
    BackgroundJob* first_waiting_ = nullptr;
    BackgroundJob* last_waiting_ = nullptr;
    std::uint32_t out_ = 0;    // submitted and not come back
    std::uint32_t taken_ = 0;  // of those finished; wraps
    std::atomic<bool> closing_{false};
    std::atomic<bool> stop_{false};
    alignas(64) std::atomic<std::uint32_t> finished_{0};  // by all threads; wraps
};

}  // namespace cairn::rpc
