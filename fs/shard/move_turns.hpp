// At the root's home: directories move one at a time, in the whole file system. Else two moves, each of which is sound,
// could make a loop together.
#pragma once

#include <optional>

#include "fs/shard/shard_state.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

class MoveTurns {
public:
    // After a restart, shards that had a turn have this time to say so.
    static constexpr Duration kGrace = seconds(12);

    explicit MoveTurns(ShardState& state) noexcept : state_(state), grace_ends_(state.time.now + kGrace) {}

    // mutants: fs-move-turns
    Co<PeerAnswer> take(ShardNumber from, MoveTurnRequest request) {
        if (request.is_end) {
            if (holder_ == from) {
                holder_.reset();
                state_.gates.open(gate());
            }
            co_return PeerAnswer{};
        }
        if (request.resumes && (holder_ == from || !holder_)) {
            hold(from);
            co_return PeerAnswer{};
        }
        if (!state_.is_alone()) {
            co_await state_.peers.until(grace_ends_);
        }
        const Instant due = state_.time.now + Gates::kTimeout / 2;
        while (holder_) {
            co_await state_.gates.opened(gate());
            if (holder_ && state_.time.now >= due) {
                co_return PeerAnswer{kErrorUnreachable};
            }
        }
        hold(from);
        co_return PeerAnswer{};
    }

private:
    [[nodiscard]] static Gate gate() { return {Gate::Kind::Attributes, {}, "moves"}; }
    void hold(ShardNumber from) {
        if (!holder_) {
            state_.gates.close(gate());
        }
        holder_ = from;
    }

    ShardState& state_;
    Instant grace_ends_;
    std::optional<ShardNumber> holder_;
};

}  // namespace cairn::fs
