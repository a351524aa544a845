// At the root's home: lets directories move one at a time in the whole file system. Otherwise two moves, each of which
// is sound alone, could make a loop together.
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

// A turn survives restarts of its holder and of this shard: the holder may have placed the directory, and not said so
// yet.
class MoveTurns {
public:
    // A shard that waits longer gets the answer that there is no turn: the holder may be dead.
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
    absl::flat_hash_set<std::pair<std::uint16_t, std::uint64_t>> unwanted_;  // turns for which no shard waits any more
    absl::flat_hash_map<std::uint16_t, std::uint32_t> lives_;                // how often a shard has come back
};

}  // namespace cairn::fs
