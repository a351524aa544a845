// At the root's home: directories move one at a time, in the whole file system. Else two moves, each of which is sound,
// could make a loop together.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <optional>
#include <utility>

#include "fs/shard/intents.hpp"
#include "fs/shard/room.hpp"
#include "fs/shard/shard_state.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

// A turn is kept through restarts, of its holder and of this shard: who holds it may have placed the directory, and not
// told so yet.
class MoveTurns {
public:
    // Who waits longer is told that there is no turn: its holder may be dead.
    static constexpr Duration kPatience = seconds(5);

    explicit MoveTurns(ShardState& state);
    Co<PeerAnswer> serve(ShardNumber from, MoveTurnRequest request);

private:
    Co<PeerAnswer> take(HeldTurn turn);
    Co<PeerAnswer> end(ShardNumber from, MoveTurnRequest request);
    [[nodiscard]] bool is_unwanted(const HeldTurn& turn, std::uint32_t life) const;
    [[nodiscard]] bool hold(const HeldTurn& turn);

    ShardState& state_;
    std::optional<HeldTurn> holder_;
    absl::flat_hash_set<std::pair<std::uint16_t, std::uint64_t>> unwanted_;  // turns that are waited for no more
    absl::flat_hash_map<std::uint16_t, std::uint32_t> lives_;                // of shards that have come back
};

}  // namespace cairn::fs
