// Names that are looked up: walk, list.
#pragma once

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// A directory that a name is looked up in, or the errno that says why not.
struct FoundDirectory {
    int error = 0;
    const InodeState* state = nullptr;  // there if there is no error
};

class NameLookups {
public:
    explicit NameLookups(ShardState& state) noexcept : state_(state) {}

    [[nodiscard]] std::uint32_t walk(const Call& call, const WalkRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t list(const Call& call, const ListRequest& request, const AnswerRoom& room) const;

    // Judges the directory, what the caller wants to do there, and whether this shard has the name.
    [[nodiscard]] FoundDirectory find_directory(const Call& call, const FileId& directory, std::string_view name,
                                                std::uint32_t wanted) const;
    // The answer for a child that is there: opens it if rights are wanted. `was_made`: by the caller, who may.
    [[nodiscard]] std::uint32_t found(const Call& call, const DentryState& child, std::uint32_t rights, bool was_made,
                                      const AnswerRoom& room);

private:
    ShardState& state_;
};

// Opens a file that is there for a client who wants these rights. Returns 0 or an errno.
[[nodiscard]] int judge_open(const Inode& inode, const Credentials& who, std::uint32_t rights) noexcept;

}  // namespace cairn::fs
