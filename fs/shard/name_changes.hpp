// Names that come, go and move: create, remove, rename, link.
#pragma once

#include "fs/shard/cutter.hpp"
#include "fs/shard/name_lookups.hpp"

namespace cairn::fs {

class NameChanges {
public:
    // `seed` is drawn anew at each start.
    NameChanges(ShardState& state, NameLookups& lookups, Cutter& cutter, std::uint64_t seed);

    [[nodiscard]] std::uint32_t create(const Call& call, const CreateRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t remove(const Call& call, const RemoveRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t rename(const Call& call, const RenameRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t link(const Call& call, const LinkRequest& request, const AnswerRoom& room);

private:
    [[nodiscard]] FileId new_id(std::uint16_t slot) noexcept;
    [[nodiscard]] Inode make_inode(const Call& call, const CreateRequest& request, const Owned& directory);
    [[nodiscard]] int judge_gone(const Call& call, const InodeState& directory, const DentryState& child,
                                 bool is_directory) const;
    void take_name(const InodeState& child);
    [[nodiscard]] int judge_move(const Call& call, const RenameRequest& request, const InodeState& directory,
                                 const InodeState& to_directory, const DentryState& child) const;
    [[nodiscard]] bool is_within(const FileId& directory, const FileId& outer) const;
    void touch(const FileId& directory) { state_.touched[directory] = state_.time.wall_ns; }

    ShardState& state_;
    NameLookups& lookups_;
    Cutter& cutter_;
    std::uint64_t seed_;
    std::uint64_t serial_ = 1;  // of the last file that was made
};

}  // namespace cairn::fs
