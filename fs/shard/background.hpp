// What a shard does besides calls: a little of it in each turn.
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
        bool has_more = false;  // that is to be done at once
        int sync_error = 0;
    };
    // `sync`: somebody waits for a medium of pages. The turn's changes are committed.
    [[nodiscard]] Outcome run(bool sync);
    // The client is gone: what it alone had open, and has no name, goes.
    void forget(std::uint64_t client);
    // Directories' times, of so many at most.
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
