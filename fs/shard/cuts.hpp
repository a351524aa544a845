// Cuts and removes files that have chunks at several shards.
#pragma once

#include <memory>

#include "fs/shard/cutter.hpp"
#include "fs/shard/file_calls.hpp"
#include "fs/shard/peer_calls.hpp"
#include "fs/shard/room.hpp"
#include "fs/shard/steps.hpp"

namespace cairn::fs {

class Cuts {
public:
    Cuts(ShardState& state, Steps& steps, Cutter& cutter, FileCalls& files) noexcept
        : state_(state), steps_(steps), cutter_(cutter), files_(files) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Makes a file shorter. The call was judged.
    LoneTask cut(KeptCall kept);
    // As cut(), after a restart. The file's gate is closed.
    LoneTask resume(StepId step, CutFile intent, std::unique_ptr<ClosedGate> gate);
    // Removes a file without names and users: first other shards' chunks, then what this shard has.
    LoneTask remove(FileId file);

    // Cuts the chunks of this shard for another shard.
    Co<PeerAnswer> cut_chunks(CutRequest request);

private:
    Co<bool> cut_elsewhere(FileId file, std::uint64_t size, CallToken& token);
    Co<bool> end(StepId step);

    ShardState& state_;
    Steps& steps_;
    Cutter& cutter_;
    FileCalls& files_;
    Tasks tasks_;
};

}  // namespace cairn::fs
