// Names that are looked up: walk, list.
#pragma once

#include "fs/shard/lending.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// A directory that a name is looked up in, or the errno that says why not.
struct FoundDirectory {
    int error = 0;
    Owned owned{};
};
// Its attributes are asked for, or are about to change: ShardState::waits_for says which gate is closed.
constexpr int kErrorWaits = -1;

class NameLookups {
public:
    NameLookups(ShardState& state, Lending& lending) noexcept : state_(state), lending_(lending) {}

    [[nodiscard]] std::uint32_t walk(const Call& call, const WalkRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t list(const Call& call, const ListRequest& request, const AnswerRoom& room);

    // Judges the directory, what the caller wants to do there, and whether this shard has the name.
    [[nodiscard]] FoundDirectory find_directory(const Credentials& who, const FileId& directory, std::string_view name,
                                                std::uint32_t wanted);
    // What a call answers that did not find its directory.
    [[nodiscard]] static std::uint32_t refuse(const FoundDirectory& directory, const AnswerRoom& room) {
        return directory.error == kErrorWaits ? kWaits : room.error(directory.error);
    }
    // The answer for a child that is there: opens it if rights are wanted. `was_made`: by the caller, who may.
    [[nodiscard]] std::uint32_t found(const Call& call, const DentryState& child, std::uint32_t rights, bool was_made,
                                      const AnswerRoom& room);

private:
    [[nodiscard]] FoundDirectory find(const FileId& directory);

    ShardState& state_;
    Lending& lending_;
};

// Whether a file of this kind is opened with these rights by anybody. Returns 0 or an errno.
[[nodiscard]] int judge_kind_of_open(const Inode& inode, std::uint32_t rights) noexcept;
// The same, by this caller.
[[nodiscard]] int judge_open(const Inode& inode, const Credentials& who, std::uint32_t rights) noexcept;

}  // namespace cairn::fs
