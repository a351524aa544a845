// Cuts files, and removes files without a name and a user. Does a part in each turn, whatever their size.
#pragma once

#include <deque>
#include <optional>

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// Cuts what this shard has of a file. Chunks at other shards are removed before: see Cuts.
class Cutter {
public:
    explicit Cutter(ShardState& state) noexcept : state_(state) {}

    // Adds the records that cut a file's chunks to a size, or as near to it as one change gets. Sets size and
    // generation of `inode`, but adds no record of it. Returns 0, or ENOSPC.
    [[nodiscard]] int cut(Inode& inode, std::uint64_t size);
    // Adds the records that remove a file without names and users. For a long file they only begin to remove it.
    void remove(Inode inode);
    // Goes on cutting the file to this size in later turns, and then answers the call.
    void go_on(const FileId& file, std::uint64_t size, CallToken token) {
        jobs_.push_back({Job::What::Cut, file, size, token});
    }
    // Removes the file, which has no name, in later turns.
    void remove_later(const FileId& file) { jobs_.push_back({Job::What::Remove, file, 0, kNobody}); }
    // As remove_later(), for a file of which other shards have no chunks any more.
    void remove_here(const FileId& file) { jobs_.push_back({Job::What::RemoveHere, file, 0, kNobody}); }

    // The result of a step.
    struct Done {
        CallToken token = kNobody;    // the call whose file is cut now, or cannot be cut further
        bool goes_elsewhere = false;  // other shards' chunks of the file must go first
        FileId file{};
        int error = 0;
    };
    // Does a part of the work that is left, as changes. Returns a result if a job ended, or needs other shards.
    [[nodiscard]] std::optional<Done> step();
    [[nodiscard]] bool is_idle() const noexcept { return jobs_.empty(); }

    // Adds the records that remove this shard's chunks within [*from, *to), or the last of them. Lowers *to to what is
    // left. The generation becomes the file's. Returns 0, or ENOSPC.
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
