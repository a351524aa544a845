// A caller of a simulated file system. It makes one request after the other, and waits for each answer.
#pragma once

#include <coroutine>
#include <memory>
#include <utility>
#include <vector>

#include "fs/shard/task.hpp"
#include "fs/sim/shard_cluster.hpp"

namespace cairn::fs {

// Its coroutines wait for answers, and for calm. If a shard ends, the request is made again with the same numbers when
// the shard is back.
class SimCaller {
public:
    SimCaller(ShardCluster& cluster, ShardClient client) : cluster_(cluster), client_(std::move(client)) {}
    SimCaller(const SimCaller&) = delete;
    SimCaller& operator=(const SimCaller&) = delete;
    [[nodiscard]] Tasks& tasks() noexcept { return *life_; }

    // Takes answers, and resumes the coroutines.
    void step();
    void resend(ShardNumber shard);
    [[nodiscard]] const ShardClient& client() const noexcept { return client_; }
    [[nodiscard]] std::uint64_t resent() const noexcept { return resent_; }

    // All shards are there, and have been for a while.
    bool is_calm = false;

    // The open state of a caller that has died.
    struct Left {
        ShardClient client{};
        CallToken token = 0;  // a call that may not be answered yet; 0: none
        ShardNumber to = 0;
    };

protected:
    ~SimCaller() = default;
    struct Answered {
        std::int32_t error = 0;
        std::vector<std::uint8_t> bytes{};
    };
    // co_await yields the answer to a request.
    struct Asked {
        SimCaller& caller;
        ShardNumber to;
        Request request;
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiter);
        [[nodiscard]] Answered await_resume() const { return std::move(caller.answered_); }
    };
    // co_await returns when all is calm.
    struct Calm {
        SimCaller& caller;
        [[nodiscard]] bool await_ready() const noexcept { return caller.is_calm; }
        void await_suspend(std::coroutine_handle<> waiter) noexcept { caller.waits_for_calm_ = waiter; }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] Asked ask(ShardNumber to, const Request& request) { return {*this, to, request}; }
    // Dies in the middle of its work, and is another client from then on.
    Left die_as(std::uint64_t number);

    ShardCluster& cluster_;
    ShardClient client_;

private:
    struct Under {
        CallToken token = 0;
        ShardNumber to = 0;
        Request request{};
        std::coroutine_handle<> waiter{};
    } under_{};
    Answered answered_{};
    std::coroutine_handle<> waits_for_calm_{};
    std::uint64_t resent_ = 0;
    std::unique_ptr<Tasks> life_ = std::make_unique<Tasks>();
};

}  // namespace cairn::fs
