// Makes files shorter, and removes those that have no name and no user: a part in each turn, whatever their size.
#pragma once

#include <deque>
#include <optional>

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// Cuts what this shard has of a file. Chunks at other shards go before: see Cuts.
class Cutter {
public:
    explicit Cutter(ShardState& state) noexcept : state_(state) {}

    // Adds the records that cut a file to a size, or as near as one change gets: the chunks, but not the inode of what
    // is left, which gets size and generation. Returns 0, or ENOSPC.
    [[nodiscard]] int cut(Inode& inode, std::uint64_t size);
    // Adds the records by which a file without names and users goes, or, if it is long, begins to.
    void remove(Inode inode);
    // The file goes on being cut to this size; then this call is answered.
    void go_on(const FileId& file, std::uint64_t size, CallToken token) {
        jobs_.push_back({Job::What::Cut, file, size, token});
    }
    // The file, which has no name, goes in later turns.
    void remove_later(const FileId& file) { jobs_.push_back({Job::What::Remove, file, 0, kNobody}); }
    // Likewise; other shards have no chunks of it any more.
    void remove_here(const FileId& file) { jobs_.push_back({Job::What::RemoveHere, file, 0, kNobody}); }

    // What became of a step's file.
    struct Done {
        CallToken token = kNobody;    // of a call whose file is cut now, or cannot be cut further
        bool goes_elsewhere = false;  // other shards' chunks of the file are to go first
        FileId file{};
        int error = 0;
    };
    // Does a part of what is left to do, as changes. Returns what is done thereby, or to be done.
    [[nodiscard]] std::optional<Done> step();
    [[nodiscard]] bool is_idle() const noexcept { return jobs_.empty(); }

    // Adds the records by which this shard's chunks within [*from, *to) go, or the last of them, and lowers *to to what
    // is left. The generation is the file's from now on. Returns 0, or ENOSPC.
    [[nodiscard]] int cut_chunks(const FileId& file, std::uint64_t generation, std::uint64_t from, std::uint64_t& to);

private:
    struct Job {
        enum class What : std::uint8_t { Cut, Remove, RemoveHere };
        What what = What::Cut;
        FileId file{};
        std::uint64_t size = 0;
        CallToken token = kNobody;
    };
    [[nodiscard]] std::optional<Done> cut_step(const Job& job, Inode inode);
    [[nodiscard]] std::optional<Done> remove_step(const Job& job, const Inode& inode);
    [[nodiscard]] bool has_chunks_elsewhere(const Inode& inode) const noexcept {
        return !state_.is_alone() && inode.size > state_.store.chunk_bytes();
    }

    ShardState& state_;
    std::deque<Job> jobs_;
};

}  // namespace cairn::fs
