// Calls that look names up: walk, list.
#pragma once

#include "fs/shard/lending.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// A directory for a look-up, or the errno that says why there is none.
struct FoundDirectory {
    int error = 0;
    Owned owned{};
};
// The directory's attributes were asked for, or are about to change. ShardState::waits_for is the closed gate.
constexpr int kErrorWaits = -1;

class NameLookups {
public:
    NameLookups(ShardState& state, Lending& lending) noexcept : state_(state), lending_(lending) {}

    [[nodiscard]] std::uint32_t walk(const Call& call, const WalkRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t list(const Call& call, const ListRequest& request, const AnswerRoom& room);

    // Judges the directory, the caller's rights to it, and whether this shard has the name.
    [[nodiscard]] FoundDirectory find_directory(const Credentials& who, const FileId& directory, std::string_view name,
                                                std::uint32_t wanted);
    // Answers a call that did not find its directory.
    [[nodiscard]] static std::uint32_t refuse(const FoundDirectory& directory, const AnswerRoom& room) {
        return directory.error == kErrorWaits ? kWaits : room.error(directory.error);
    }
    // Answers for a child that exists. Opens it if rights are wanted. `was_made`: the caller has made it, so it may
    // open it.
    [[nodiscard]] std::uint32_t found(const Call& call, const DentryState& child, std::uint32_t rights, bool was_made,
                                      const AnswerRoom& room);

private:
    [[nodiscard]] FoundDirectory find(const FileId& directory);

    ShardState& state_;
    Lending& lending_;
};

// Judges whether a file of this kind can be opened with these rights at all. Returns 0 or an errno.
[[nodiscard]] int judge_kind_of_open(const Inode& inode, std::uint32_t rights) noexcept;
// As judge_kind_of_open(), and whether this caller may.
[[nodiscard]] int judge_open(const Inode& inode, const Credentials& who, std::uint32_t rights) noexcept;

}  // namespace cairn::fs
