// Calls that are posted together and collected one by one, to one server or several. These are SyncCall, AsyncCall and
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

// The result of a call of a batch. The answer lies in the call's response buffer. Without a buffer the answer is not
// kept.
struct Completed {
    std::uint64_t tag = 0;  // the call's
    CallStatus status = CallStatus::Ok;
    Duration latency{};
    rpc::MsgBuffer* response = nullptr;
};

// Posts and collects calls. Used on the endpoint's thread.
class BatchCalls {
public:
    // Both arguments outlive the object.
    BatchCalls(Endpoint& endpoint, worker::Worker& worker) : endpoint_(endpoint), worker_(worker) {}
    // Cancels the calls that have not ended. They are not reported.
    ~BatchCalls();
    BatchCalls(const BatchCalls&) = delete;
    BatchCalls& operator=(const BatchCalls&) = delete;

    // Posts the calls in their order, until one is refused. Returns how many were posted. Small calls of one session in
    // neighbouring blocks leave in one WRITE.
    std::size_t async_call(std::span<const BatchCall> batch, Instant now);
    // Returns a call that has ended, in the order of their ends, or nothing if there is none.
    [[nodiscard]] std::optional<Completed> poll_completion();
    // Posts a call and takes turns of the worker until it has ended. A call that is not posted ends with TableFull,
    // Disconnected or RequestTooLong. Not called from within a turn. Calls of batches that end meanwhile must be
    // polled.
    Completed sync_call(SessionId session, const Call& call, const std::function<Instant()>& clock);

    // Returns the number of calls that have not ended.
    [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }

private:
    struct Place {
        BatchCalls* calls = nullptr;
        std::uint32_t number = 0;
        rpc::CallId id = 0;  // 0 if no call is under way here
        std::uint64_t tag = 0;
        rpc::MsgBuffer* response = nullptr;
        bool awaited = false;  // by sync_call()
    };
    [[nodiscard]] Place& take_place();
    // Posts a call. The place stays free unless the verdict is Posted.
    PostVerdict post(Place& place, SessionId session, const Call& call, Instant now);
    void on_completed(Place& place, const rpc::CallResult& result);

    Endpoint& endpoint_;
    worker::Worker& worker_;
    std::deque<Place> places_;  // places never move
    std::vector<std::uint32_t> free_;
    std::size_t under_way_ = 0;
    std::deque<Completed> completed_;
    std::optional<Completed> awaited_;
};

}  // namespace cairn::scalerpc
