// Calls that are posted together and collected one by one, to one server or several: SyncCall, AsyncCall and
// PollCompletion of the paper (ScaleRPC 3.5).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/worker/worker.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::scalerpc {

// A call of a batch. Its completion and context are not used (asserted to be empty).
struct BatchCall {
    SessionId session{};
    Call call{};
};

// How a call of a batch ended. The answer lies in the call's response buffer; without one it is not kept.
struct Completed {
    std::uint64_t tag = 0;  // the call's
    CallStatus status = CallStatus::Ok;
    Duration latency{};
    rpc::MsgBuffer* response = nullptr;
};

// One thread uses it: the endpoint's.
class BatchCalls {
public:
    // Both outlive the object.
    BatchCalls(Endpoint& endpoint, worker::Worker& worker) : endpoint_(endpoint), worker_(worker) {}
    // Cancels the calls that have not ended. Nobody is told.
    ~BatchCalls();
    BatchCalls(const BatchCalls&) = delete;
    BatchCalls& operator=(const BatchCalls&) = delete;

    // Posts the calls in their order, until one is refused. Returns how many were posted. Calls of one session leave in
    // one WRITE if they are small and neighbours.
    std::size_t async_call(std::span<const BatchCall> batch, Instant now);
    // Returns a call that has ended, in the order of their ends; nothing if there is none.
    [[nodiscard]] std::optional<Completed> poll_completion();
    // Posts a call and takes turns of the worker until it has ended. A call that is not posted ends with TableFull,
    // Disconnected or RequestTooLong. Not from within a turn. Calls of batches that end meanwhile are to be polled.
    Completed sync_call(SessionId session, const Call& call, const std::function<Instant()>& clock);

    // Calls that have not ended.
    [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }

private:
    struct Place {
        BatchCalls* calls = nullptr;
        std::uint32_t number = 0;
        rpc::CallId id = 0;  // 0: nothing is under way here
        std::uint64_t tag = 0;
        rpc::MsgBuffer* response = nullptr;
        bool awaited = false;  // by sync_call()
    };
    [[nodiscard]] Place& take_place();
    // Returns the verdict; the place is free unless the call was posted.
    PostVerdict post(Place& place, SessionId session, const Call& call, Instant now);
    void on_completed(Place& place, const rpc::CallResult& result);

    Endpoint& endpoint_;
    worker::Worker& worker_;
    std::deque<Place> places_;  // nothing moves them
    std::vector<std::uint32_t> free_;
    std::size_t under_way_ = 0;
    std::deque<Completed> completed_;
    std::optional<Completed> awaited_;
};

}  // namespace cairn::scalerpc
