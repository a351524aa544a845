// A shard's work besides calls: a little of it in each turn.
#pragma once

#include "fs/shard/cuts.hpp"
#include "fs/shard/kept_answers.hpp"
#include "fs/shard/lending.hpp"
#include "fs/shard/sweeper.hpp"

namespace cairn::fs {

class Background {
public:
    Background(ShardState& state, Cutter& cutter, Cuts& cuts, Lending& lending, KeptAnswers& kept);

    struct Outcome {
        bool has_more = false;  // there is more work to do at once
        int sync_error = 0;
    };
    // Does a turn's part of the work. `sync`: a caller waits for a medium of pages. The turn's changes are committed.
    [[nodiscard]] Outcome run(bool sync);
    // Removes files without a name that only this client had open. The client is gone.
    void forget(std::uint64_t client);
    // Writes the times of directories, at most `most` of them.
    void write_touched(std::uint32_t most);
    [[nodiscard]] Instant next_deadline() const noexcept;

private:
    static constexpr Duration kTouchedEvery = seconds(1);
    static constexpr Duration kSyncEvery = seconds(5);

    void end_grace();
    void look_for_orphans();
    void cut();
    void answer_cut(const Cutter::Done& done);
    [[nodiscard]] int sync(bool wanted);

    ShardState& state_;
    Cutter& cutter_;
    Cuts& cuts_;
    Lending& lending_;
    KeptAnswers& kept_;
    Sweeper sweeper_;
    Instant touched_due_ = Instant::never();
    Instant sync_due_ = Instant::never();
    static constexpr std::size_t kNoOrphans = Table<FileId, InodeState>::kParts;
    std::size_t orphans_from_ = kNoOrphans;  // the part of the table that is looked at next
    bool sync_failed_ = false;
};

}  // namespace cairn::fs
