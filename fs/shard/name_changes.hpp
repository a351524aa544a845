// Calls that make, remove and move names: create, remove, rename, link.
#pragma once

#include "fs/shard/name_moves.hpp"

namespace cairn::fs {

class NameChanges {
public:
    // Makes the part. `seed` is drawn anew at each start.
    NameChanges(ShardState& state, NameLookups& lookups, Counts& counts, NameMoves& moves, std::uint64_t seed);

    [[nodiscard]] std::uint32_t create(const Call& call, const CreateRequest& request, const AnswerRoom& room);
    // Answers a create() that made a file before. `outcome` was kept of that call.
    [[nodiscard]] std::uint32_t create_again(const Call& call, const CreateRequest& request, std::int64_t outcome,
                                             const AnswerRoom& room);
    [[nodiscard]] std::uint32_t remove(const Call& call, const RemoveRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t rename(const Call& call, const RenameRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t link(const Call& call, const LinkRequest& request, const AnswerRoom& room);

private:
    [[nodiscard]] FileId new_id(std::uint16_t slot) noexcept;
    [[nodiscard]] Inode make_inode(const Call& call, const CreateRequest& request, const Owned& directory);
    [[nodiscard]] int judge_gone(const Call& call, const Owned& directory, const DentryState& child,
                                 bool is_to_be_directory) const;
    [[nodiscard]] int judge_move(const Call& call, const RenameRequest& request, const Owned& directory,
                                 const Owned& to_directory, const DentryState& child) const;
    [[nodiscard]] bool is_within(const FileId& directory, const FileId& outer) const;
    // True if this shard alone can take a name from a file: it has all that changes.
    [[nodiscard]] bool is_local(const DentryState& child) const noexcept {
        return state_.is_alone() || (state_.is_home(child.child) && !is_directory(child.mode));
    }
    // True if a call that changes a name must wait for the gate of the name or of its file. Then waits_for is the gate.
    [[nodiscard]] bool must_wait(const FileId& directory, std::string_view name, const DentryState* child);
    [[nodiscard]] std::uint32_t rename_here(const Call& call, const RenameRequest& request, const Owned& directory,
                                            const AnswerRoom& room);
    void put_renamed(const RenameRequest& request, const DentryState& child, const DentryState* there);

    ShardState& state_;
    NameLookups& lookups_;
    Counts& counts_;
    NameMoves& moves_;
    std::uint64_t seed_;
    std::uint64_t serial_ = 1;  // the serial number of the last file that was made
};

}  // namespace cairn::fs
