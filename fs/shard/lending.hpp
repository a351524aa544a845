// Lends directories' attributes to the shards that have names of them, and recalls them before they change.
#pragma once

#include "fs/shard/peer_calls.hpp"

namespace cairn::fs {

class Lending {
public:
    explicit Lending(ShardState& state) noexcept : state_(state) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Asks the directory's home for its attributes. Calls may wait meanwhile at the gate of the attributes.
    void borrow(const FileId& directory);

    // Lends attributes to another shard. This shard is the directory's home.
    Co<PeerAnswer> lend(ShardNumber to, LendRequest request);
    // Recalls a directory's attributes. When it returns, no shard uses them any more. The directory's gate is closed.
    Co<bool> recall(FileId directory);
    // Recalls a directory's attributes, and asks all other shards whether they have names in it. The directory's gate
    // is closed. Yields 0, ENOTEMPTY, or kErrorUnreachable.
    Co<int> judge_empty(FileId directory);

    // Gives borrowed attributes back to the home.
    [[nodiscard]] PeerAnswer give_back(const RecallRequest& request);
    // Sends now and then to directories' homes that names in them came or went.
    void tell_touched();

private:
    LoneTask ask_home(FileId directory);
    [[nodiscard]] std::vector<LentDirectories::Borrower> who_may_have(const FileId& directory);
    [[nodiscard]] bool has_names(const FileId& directory) const;

    ShardState& state_;
    Instant touched_due_{};
    Tasks tasks_;
};

}  // namespace cairn::fs
