// Changes that give space back, in a store that is full.
#pragma once

#include "fs/shard/shard_state.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

// Waits until there is room for one change that gives space back and has no record yet. Without room, a coordinator
// would have to leave a change at several shards half done. So would a shard that makes one of its steps. Yields false
// if there will be no room: the store is damaged.
inline Co<bool> until_room(ShardState& state) {
    while (state.waits_for_room()) {
        co_await state.gates.opened(state.waits_for);
    }
    co_return state.store.has_room(Log::kMostRecordBytes, Need::Shrinks);
}

}  // namespace cairn::fs
