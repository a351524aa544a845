// Directories' attributes are lent to the shards that have names of them, and recalled before they change.
#pragma once

#include "fs/shard/peer_calls.hpp"

namespace cairn::fs {

class Lending {
public:
    explicit Lending(ShardState& state) noexcept : state_(state) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Asks the directory's home. Calls may wait for the gate of its attributes meanwhile.
    void borrow(const FileId& directory);

    // At the directory's home.
    Co<PeerAnswer> lend(ShardNumber to, LendRequest request);
    // Nobody goes by the directory's attributes any more, when this returns. Its gate is closed.
    Co<bool> recall(FileId directory);
    // All other shards let go, and say whether they have names in the directory. Its gate is closed. Gives 0,
    // ENOTEMPTY, or kErrorUnreachable.
    Co<int> judge_empty(FileId directory);

    // At a borrower.
    [[nodiscard]] PeerAnswer give_back(const RecallRequest& request);
    // Tells homes of directories which names came and went, now and then.
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
