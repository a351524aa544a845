// A shard's requests to other shards, and the coroutines that wait for the answers.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <coroutine>
#include <deque>
#include <map>
#include <vector>

#include "fs/message/peers.hpp"
#include "fs/shard/calls.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

// Messages leave in leave(), after the commit of the changes that they speak of. Waiting coroutines are resumed from
// within take_answer(), lose() and wake().
class Peers {
public:
    static constexpr Duration kTimeout = seconds(10);

    // `seed` is drawn anew at each start, so an answer to a request of an earlier life has no match.
    Peers(ShardHost& host, ShardNumber own, std::uint64_t seed) noexcept
        : host_(host), own_(own), last_number_(seed << 32U | 1U) {}

    // co_await ask(...) yields a PeerAnswer. The request is sent at once, so several may be under way before the first
    // is awaited. `to` is another shard (asserted).
    class Asked {
    public:
        Asked(Peers& peers, ShardNumber to, const PeerRequest& request)
            : peers_(peers), number_(peers.stage_request(to, request)) {
            if (number_ != kUnreachable) {
                peers_.waiters_.emplace(number_, Waiter{to, this});
            }
        }
        Asked(const Asked&) = delete;
        Asked& operator=(const Asked&) = delete;
        ~Asked() { peers_.waiters_.erase(number_); }
        struct Awaiter {
            Asked& asked;
            [[nodiscard]] bool await_ready() const { return !asked.peers_.waiters_.contains(asked.number_); }
            void await_suspend(std::coroutine_handle<> waiter) const noexcept { asked.handle_ = waiter; }
            [[nodiscard]] PeerAnswer await_resume() const noexcept { return asked.answer_; }
        };
        [[nodiscard]] Awaiter operator co_await() noexcept { return {*this}; }

    private:
        friend class Peers;
        Peers& peers_;
        std::uint64_t number_;
        std::coroutine_handle<> handle_{};
        PeerAnswer answer_{kErrorUnreachable};
    };
    [[nodiscard]] Asked ask(ShardNumber to, const PeerRequest& request) { return {*this, to, request}; }
    // Sends a request whose answer is not wanted.
    void tell(ShardNumber to, const PeerRequest& request) { (void)stage_request(to, request); }
    void answer(ShardNumber to, std::uint64_t number, const PeerAnswer& answer);

    // co_await until(...) returns at that time.
    class Alarm {
    public:
        Alarm(Peers& peers, Instant due) noexcept : peers_(peers), due_(due) {}
        [[nodiscard]] bool await_ready() const noexcept { return due_ <= peers_.now_; }
        void await_suspend(std::coroutine_handle<> waiter) { peers_.alarms_.emplace(due_, waiter); }
        void await_resume() const noexcept {}

    private:
        Peers& peers_;
        Instant due_;
    };
    [[nodiscard]] Alarm until(Instant due) noexcept { return {*this, due}; }

    void begin_turn(Instant now) noexcept { now_ = now; }
    void take_answer(ShardNumber from, std::uint64_t number, const PeerAnswer& answer);
    // Notes that the shard is lost. All requests to it, until it is back, yield kErrorUnreachable.
    void lose(ShardNumber peer);
    void find(ShardNumber peer);
    [[nodiscard]] bool is_lost(ShardNumber peer) const noexcept { return peer < lost_.size() && lost_[peer]; }
    // Resumes the coroutines that have waited long enough.
    void wake();
    // Hands staged messages to the host. Returns true if there were any.
    bool leave() noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept;
    [[nodiscard]] std::size_t waiting() const noexcept { return waiters_.size() + alarms_.size(); }

private:
    static constexpr std::uint64_t kUnreachable = 0;
    struct Waiter {
        ShardNumber to = 0;
        Asked* asked = nullptr;
    };
    struct Staged {
        ShardNumber to = 0;
        std::uint32_t at = 0;
        std::uint32_t bytes = 0;
    };
    [[nodiscard]] std::uint64_t stage_request(ShardNumber to, const PeerRequest& request);
    [[nodiscard]] std::span<std::uint8_t> room();
    void stage(ShardNumber to, std::uint32_t bytes);
    void resume(std::uint64_t number, const PeerAnswer& answer);

    ShardHost& host_;
    ShardNumber own_;
    Instant now_{};
    std::uint64_t last_number_;
    std::vector<std::uint8_t> bytes_;
    std::size_t used_ = 0;
    std::vector<Staged> staged_;
    std::vector<bool> lost_;
    absl::flat_hash_map<std::uint64_t, Waiter> waiters_;
    std::deque<std::pair<Instant, std::uint64_t>> asked_;  // the time of each request, oldest first
    std::multimap<Instant, std::coroutine_handle<>> alarms_;
};

}  // namespace cairn::fs
