// Background handlers. Requests with long work go to threads of the application, so that the worker goes on polling.
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

// One request on its way to a thread and back. Only the worker uses MsgPool. It takes all memory of a job before it
// hands the job over, and gives it back afterwards. So an answer cannot become longer than the registered length of its
// type.
struct BackgroundJob {
    RequestHandle handle{};
    BackgroundHandler function = nullptr;
    void* context = nullptr;
    MsgBuffer request{};   // a copy, or the buffer in which a large request was put together
    MsgBuffer response{};  // `bytes` is the size of the answer
    std::uint32_t response_bytes_max = 0;
    std::uint64_t trace = 0;              // as in Request
    Instant deadline = Instant::never();  // the caller's; a thread that sees it past does not begin the job
    bool is_late = false;                 // no thread began it in time; valid once it is finished
    BackgroundJob* next = nullptr;        // the next job that waits for a thread
    std::uint8_t type = 0;
};

// A request as a background handler sees it. It is valid until the handler returns. It gives no access to the endpoint,
// since calls, sessions and other answers belong to the worker.
class BackgroundRequest {
public:
    explicit BackgroundRequest(BackgroundJob& job) noexcept : job_(job) {}
    BackgroundRequest(const BackgroundRequest&) = delete;
    BackgroundRequest& operator=(const BackgroundRequest&) = delete;

    [[nodiscard]] std::uint8_t type() const noexcept { return job_.type; }
    [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept { return job_.request.span(); }
    [[nodiscard]] std::uint64_t trace() const noexcept { return job_.trace; }
    // Returns room for the answer, all 0. Without a call the answer is empty. A further call changes the size of the
    // same room, and keeps what was written. Returns no room if `bytes` exceeds the registered length of the type.
    [[nodiscard]] std::span<std::uint8_t> reserve(std::uint32_t bytes) noexcept {
        if (bytes > job_.response_bytes_max) {
            return {};
        }
        return job_.response.resize(bytes);
    }

private:
    BackgroundJob& job_;
};

struct BackgroundConfig {
    std::uint32_t threads = 1;
    bool stepped = false;         // starts no threads; the pool's owner runs their jobs by run_one()
    std::uint32_t jobs_max = 64;  // jobs that wait, run, or are finished and not given back
    // Jobs that a thread has at a time. If there are several, a busy thread wakes less often. But a job may then wait
    // for a long one while other threads are idle.
    std::uint32_t jobs_per_thread = 1;
    // The CPUs of the threads. If empty, the CPUs of the thread that creates the pool. EAL pins that thread to one CPU,
    // on which a worker polls; see pmd::cpus_beside_lcores().
    std::vector<std::uint32_t> cpus{};
    void (*wake)(void* context) = nullptr;  // a thread calls it after each job, for a worker that may sleep
    void* wake_context = nullptr;           // outlives the pool
};

// The threads of background handlers. The application owns the pool. It serves one endpoint at a time, and outlives
// that endpoint. Each thread has a queue in either direction with one producer and one consumer. Jobs for which no
// thread has room wait in order at the worker. An idle thread sleeps on a futex.
class BackgroundPool {
public:
    // Makes a pool and starts its threads. Errors: the system gives no thread; limits out of range.
    static Result<std::unique_ptr<BackgroundPool>> create(const BackgroundConfig& config);
    ~BackgroundPool();
    BackgroundPool(const BackgroundPool&) = delete;
    BackgroundPool& operator=(const BackgroundPool&) = delete;

    // For a stepped pool. has_job() returns true if this thread has a job. run_one() runs the thread's oldest job on
    // the caller's thread, and returns false if there is none.
    [[nodiscard]] bool has_job(std::uint32_t thread) const noexcept;
    bool run_one(std::uint32_t thread = 0) noexcept;

    // Only the endpoint calls the functions below, on its worker's thread.
    void attach() noexcept;
    // Sets the time by which threads judge whether a job is late. It goes forward with the worker's turns. So while the
    // worker sleeps, a job may begin after its deadline.
    void keep_time(Instant now) noexcept { now_ns_.store(now.ns, std::memory_order_relaxed); }
    // Returns an unused job, or nullptr if jobs_max jobs are out.
    [[nodiscard]] BackgroundJob* take() noexcept;
    void give_back(BackgroundJob& job) noexcept;
    void submit(BackgroundJob& job) noexcept;
    // True if a finished job waits. It costs one atomic load.
    [[nodiscard]] bool any_finished() const noexcept { return finished_.load(std::memory_order_acquire) != taken_; }
    // Returns a finished job, or nullptr. The caller gives it back by give_back(). Its thread gets the next waiting
    // job.
    [[nodiscard]] BackgroundJob* poll_finished(Instant now) noexcept;
    // Returns a job that no thread got before its deadline, or nullptr. The caller gives it back by give_back().
    [[nodiscard]] BackgroundJob* take_overdue() noexcept;
    // True if jobs are out and the worker must look for finished ones from time to time, since nothing wakes it.
    [[nodiscard]] bool wants_polling() const noexcept { return config_.wake == nullptr && out_ != 0; }
    // Returns the jobs that are out, one per call, and nullptr after the last one. Waits until a running job is
    // finished. A job that no thread has begun is returned without being run.
    [[nodiscard]] BackgroundJob* drain() noexcept;
    void detach() noexcept;  // called after drain() has returned nullptr

private:
    struct Lane;

    explicit BackgroundPool(const BackgroundConfig& config);
    Status start_threads();
    void dispatch(Instant now) noexcept;
    void serve(Lane& lane) noexcept;
    bool run_next(Lane& lane) noexcept;
    [[nodiscard]] static bool has_next(const Lane& lane) noexcept;

    BackgroundConfig config_;
    FixedTable<BackgroundJob> jobs_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    bool attached_ = false;
    BackgroundJob* first_waiting_ = nullptr;
    BackgroundJob* last_waiting_ = nullptr;
    BackgroundJob* overdue_ = nullptr;
    std::uint32_t out_ = 0;    // jobs submitted and not polled yet
    std::uint32_t taken_ = 0;  // finished jobs that were polled; wraps
    std::atomic<bool> closing_{false};
    std::atomic<bool> stop_{false};
    std::atomic<std::int64_t> now_ns_{0};                 // the worker's time; read by threads
    alignas(64) std::atomic<std::uint32_t> finished_{0};  // jobs that all threads have finished; wraps
};

}  // namespace cairn::rpc
