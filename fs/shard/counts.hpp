// Counts a file's names at its home, for the shards that have the names.
#pragma once

#include "fs/shard/cutter.hpp"
#include "fs/shard/steps.hpp"
#include "fs/shard/task.hpp"

namespace cairn::fs {

class Counts {
public:
    Counts(ShardState& state, Steps& steps, Cutter& cutter) noexcept : state_(state), steps_(steps), cutter_(cutter) {}

    Co<PeerAnswer> count(ShardNumber from, CountRequest request);
    // Judges whether a file may have one more name. Returns 0 or an errno.
    [[nodiscard]] static int judge_more(const InodeState* file) noexcept;
    // Adds the records by which a file of this shard loses one name.
    void take_name(const InodeState& file);

private:
    ShardState& state_;
    Steps& steps_;
    Cutter& cutter_;
};

}  // namespace cairn::fs
