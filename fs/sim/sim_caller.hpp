// A caller of a simulated file system: one request after the other, each until it is answered.
#pragma once

#include <coroutine>
#include <memory>
#include <utility>
#include <vector>

#include "fs/shard/task.hpp"
#include "fs/sim/shard_cluster.hpp"

namespace cairn::fs {

// Its coroutines wait for answers, and for calm. A request whose shard has ended is made again, with the same numbers,
// when it is back.
class SimCaller {
public:
    SimCaller(ShardCluster& cluster, ShardClient client) : cluster_(cluster), client_(std::move(client)) {}
    SimCaller(const SimCaller&) = delete;
    SimCaller& operator=(const SimCaller&) = delete;
    [[nodiscard]] Tasks& tasks() noexcept { return *life_; }

    // Takes answers, and goes on.
    void step();
    void resend(ShardNumber shard);
    [[nodiscard]] const ShardClient& client() const noexcept { return client_; }
    [[nodiscard]] std::uint64_t resent() const noexcept { return resent_; }

    // All shards are there, and have been for a while.
    bool is_calm = false;

    // What a caller that died has left.
    struct Left {
        ShardClient client{};
        CallToken token = 0;  // of a call that may not be answered yet; 0: none
        ShardNumber to = 0;
    };

protected:
    ~SimCaller() = default;
    struct Answered {
        std::int32_t error = 0;
        std::vector<std::uint8_t> bytes{};
    };
    // co_await: the answer to a request.
    struct Asked {
        SimCaller& caller;
        ShardNumber to;
        Request request;
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiter);
        [[nodiscard]] Answered await_resume() const { return std::move(caller.answered_); }
    };
    // co_await: all is calm.
    struct Calm {
        SimCaller& caller;
        [[nodiscard]] bool await_ready() const noexcept { return caller.is_calm; }
        void await_suspend(std::coroutine_handle<> waiter) noexcept { caller.waits_for_calm_ = waiter; }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] Asked ask(ShardNumber to, const Request& request) { return {*this, to, request}; }
    // It dies in the middle of what it does, and is another client then.
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
