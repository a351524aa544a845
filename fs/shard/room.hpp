// Changes that give space back, in a store that is full.
#pragma once

#include "fs/shard/shard_state.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

// co_await until_room(...): there is room for one such change, which has no record yet. Without it, who coordinates
// changes at several shards, or makes a step of them, would have to leave it half done. Gives false if there will be
// none: the store is damaged.
// mutants: fs-until-room
inline Co<bool> until_room(ShardState& state) {
    while (state.waits_for_room()) {
        co_await state.gates.opened(state.waits_for);
    }
    co_return state.store.has_room(Log::kMostRecordBytes, Need::Shrinks);
}

}  // namespace cairn::fs
