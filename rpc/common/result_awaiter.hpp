// The common base of awaiters of calls and of other work that ends with a CallResult.
#pragma once

#include <coroutine>
#include <cstdint>

#include "rpc/common/call.hpp"

namespace cairn::rpc {

// Returns the status of a call that was not posted.
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

// A derived class posts its work when the coroutine waits.
class ResultAwaiter {
public:
    ResultAwaiter() = default;
    ResultAwaiter(const ResultAwaiter&) = delete;
    ResultAwaiter& operator=(const ResultAwaiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] CallResult await_resume() const noexcept { return result_; }

protected:
    ~ResultAwaiter() = default;
    // The completion of posted work, also at the endpoint's end.
    template <class Work>
    void expect(Work& work, std::coroutine_handle<> waiting) noexcept {
        waiting_ = waiting;
        work.completion = &ResultAwaiter::completed;
        work.context = this;
        work.ends_with_endpoint = true;
    }
    // Ends work that was not posted. The coroutine goes on at once.
    void end_at_once(PostVerdict verdict, std::uint64_t tag) noexcept { result_ = {status_of(verdict), {}, {}, tag}; }

private:
    static void completed(void* context, const CallResult& result) {
        auto& self = *static_cast<ResultAwaiter*>(context);
        self.result_ = result;
        self.waiting_.resume();  // destroys self
    }

    CallResult result_{};
    std::coroutine_handle<> waiting_{};
};

}  // namespace cairn::rpc
