// Requests that their handlers keep, to answer them later.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/types.hpp"

namespace cairn::rpc {

// Names a request. The handle is stale once the request is answered or the session has ended. A stale handle is
// harmless.
struct RequestHandle {
    SessionId session{};
    std::uint64_t request_number = 0;
};

class KeptRequest;

// The server of an endpoint, as kept requests see it. Thread: the endpoint's.
class RequestKeeper {
public:
    RequestKeeper() = default;
    RequestKeeper(const RequestKeeper&) = delete;
    RequestKeeper& operator=(const RequestKeeper&) = delete;

    // Notes that the running handler returns without an answer. Does nothing for a stale handle.
    virtual void keep(const RequestHandle& request) noexcept = 0;
    // Gives a request up. Its call ends with AnswerLost. Returns false if the handle is stale.
    virtual bool drop(const RequestHandle& request) noexcept = 0;
    // Gives a request up that was not executed, and will not be. Its call ends with NotExecuted. Returns false if the
    // handle is stale.
    virtual bool decline(const RequestHandle& request) noexcept = 0;

protected:
    // Makes all kept requests stale. Members of derived classes hold none.
    inline virtual ~RequestKeeper();

private:
    friend class KeptRequest;
    KeptRequest* first_ = nullptr;  // the first kept request
};

// A request that is answered after its handler has returned. If it is destroyed without an answer, its call ends with
// AnswerLost. It may outlive the endpoint; then it is stale.
class [[nodiscard]] KeptRequest {
public:
    KeptRequest() noexcept = default;
    KeptRequest(RequestKeeper& keeper, const RequestHandle& handle) noexcept : handle_(handle) { join(&keeper); }
    KeptRequest(KeptRequest&& other) noexcept : handle_(other.handle_) { join(other.leave()); }
    KeptRequest& operator=(KeptRequest&& other) noexcept {
        if (this != &other) {
            drop();
            handle_ = other.handle_;
            join(other.leave());
        }
        return *this;
    }
    KeptRequest(const KeptRequest&) = delete;
    KeptRequest& operator=(const KeptRequest&) = delete;
    ~KeptRequest() { drop(); }

    [[nodiscard]] const RequestHandle& handle() const noexcept { return handle_; }
    // Lets endpoints take it in place of a handle.
    operator const RequestHandle&() const noexcept { return handle_; }  // NOLINT(google-explicit-constructor)
    // Ends the call with AnswerLost, unless the request was answered. The object is stale afterwards.
    void drop() noexcept {
        if (RequestKeeper* const keeper = leave(); keeper != nullptr) {
            (void)keeper->drop(handle_);
        }
    }

    // As drop(), but ends the call with NotExecuted. Returns false if the request was answered.
    bool decline() noexcept {
        RequestKeeper* const keeper = leave();
        return keeper != nullptr && keeper->decline(handle_);
    }

private:
    friend class RequestKeeper;
    void join(RequestKeeper* keeper) noexcept {
        keeper_ = keeper;
        if (keeper != nullptr) {
            before_ = nullptr;
            next_ = std::exchange(keeper->first_, this);
            if (next_ != nullptr) {
                next_->before_ = this;
            }
        }
    }
    // Returns the keeper, or nullptr if there was none or it has ended.
    [[nodiscard]] RequestKeeper* leave() noexcept {
        RequestKeeper* const keeper = std::exchange(keeper_, nullptr);
        if (keeper != nullptr) {
            (before_ != nullptr ? before_->next_ : keeper->first_) = next_;
            if (next_ != nullptr) {
                next_->before_ = before_;
            }
        }
        return keeper;
    }

    RequestHandle handle_{};
    RequestKeeper* keeper_ = nullptr;
    KeptRequest* before_ = nullptr;
    KeptRequest* next_ = nullptr;
};

inline RequestKeeper::~RequestKeeper() {
    while (first_ != nullptr) {
        (void)first_->leave();
    }
}

}  // namespace cairn::rpc
