// A shard's requests to any shard, itself included.
#pragma once

#include "fs/shard/shard_state.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

class PeerHandler {
public:
    // Does what a shard asks for. The request's texts stay until the end.
    virtual Co<PeerAnswer> serve(ShardNumber from, PeerRequest request) = 0;

protected:
    ~PeerHandler() = default;
};

class PeerCalls {
public:
    static constexpr Duration kRetry = milliseconds(200);

    explicit PeerCalls(ShardState& state) noexcept : state_(state) {}
    void set_handler(PeerHandler& handler) noexcept { handler_ = &handler; }

    // Asks once. The request's texts stay until the answer. Error kErrorUnreachable: see peers.hpp.
    Co<PeerAnswer> ask(ShardNumber to, PeerRequest request) {
        if (to == state_.number) {
            co_return co_await handler_->serve(to, request);
        }
        co_return co_await state_.peers.ask(to, request);
    }
    // Asks again and again until the other shard answers. If it does not answer, the call of `token` fails, and `token`
    // becomes kNobody. `token` stays until the end.
    Co<PeerAnswer> insist(ShardNumber to, PeerRequest request, CallToken& token) {
        for (;;) {
            const PeerAnswer answer = co_await ask(to, request);
            if (answer.error != kErrorUnreachable) {
                co_return answer;
            }
            state_.replies.error(token, EIO);
            token = kNobody;
            co_await state_.peers.until(state_.time.now + kRetry);
        }
    }

private:
    ShardState& state_;
    PeerHandler* handler_ = nullptr;
};

// A gate that is closed while the object lives.
class ClosedGate {
public:
    ClosedGate(Gates& gates, Gate gate) : gates_(gates), gate_(std::move(gate)) { gates_.close(gate_); }
    ClosedGate(const ClosedGate&) = delete;
    ClosedGate& operator=(const ClosedGate&) = delete;
    ~ClosedGate() { open(); }
    void open() {
        if (!is_open_) {
            is_open_ = true;
            gates_.open(gate_);
        }
    }

private:
    Gates& gates_;
    Gate gate_;
    bool is_open_ = false;
};

}  // namespace cairn::fs
