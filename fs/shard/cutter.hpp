// Makes files shorter, and removes those that have no name and no user: a part in each turn, whatever their size.
#pragma once

#include <deque>

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class Cutter {
public:
    explicit Cutter(ShardState& state) noexcept : state_(state) {}

    // Adds the records that cut a file to a size, or as near as one change gets: the inode of what is left, and the
    // chunks. The inode has its other changes already, and gets size and generation. Returns 0, or ENOSPC.
    [[nodiscard]] int cut(Inode& inode, std::uint64_t size);
    // Adds the records by which a file without names and users goes, or, if it is long, begins to.
    void remove(Inode inode);
    // The file goes on being cut to this size; then this call is answered.
    void go_on(const FileId& file, std::uint64_t size, CallToken token) { jobs_.push_back({file, size, token}); }
    // The file, which has no name, goes in later turns.
    void remove_later(const FileId& file) { jobs_.push_back({file, 0, kNobody}); }

    // A call whose file is cut now, or cannot be cut further.
    struct Done {
        CallToken token = 0;
        FileId file{};
        int error = 0;
    };
    // Does a part of what is left to do, as changes. Returns the call that is done thereby.
    [[nodiscard]] std::optional<Done> step();
    [[nodiscard]] bool is_idle() const noexcept { return jobs_.empty(); }

private:
    static constexpr CallToken kNobody = ~CallToken{0};
    struct Job {
        FileId file{};
        std::uint64_t size = 0;
        CallToken token = kNobody;
    };
    [[nodiscard]] std::optional<Done> end(const Job& job, int error);

    ShardState& state_;
    std::deque<Job> jobs_;
};

}  // namespace cairn::fs
