#include "fs/shard/name_lookups.hpp"

namespace cairn::fs {

namespace {

// A reader's place is the upper bits of a name's hash: a client has room for a shard's number beside it.
constexpr unsigned kPlaceShift = 13;

[[nodiscard]] std::uint64_t place_of(std::uint64_t hash) noexcept {
    return hash >> kPlaceShift;
}

}  // namespace

// mutants: fs-judge-open
int judge_open(const Inode& inode, const Credentials& who, std::uint32_t rights) noexcept {
    if ((rights & ~(kMayRead | kMayWrite)) != 0) {
        return EINVAL;
    }
    if (is_symlink(inode.mode)) {
        return ELOOP;
    }
    if (is_directory(inode.mode) && (rights & kMayWrite) != 0) {
        return EISDIR;
    }
    return judge_access(owned(inode), who, rights);
}

// mutants: fs-find-directory
FoundDirectory NameLookups::find_directory(const Call& call, const FileId& directory, std::string_view name,
                                           std::uint32_t wanted) const {
    if (const int error = judge_name(name); error != 0) {
        return {error};
    }
    if (!state_.is_mine(state_.placement.slot_of(directory.place, directory.random, name))) {
        return {kErrorOtherShard};
    }
    const InodeState* const found = state_.inode(directory);
    if (found == nullptr || found->inode.links == 0) {
        return {ENOENT};
    }
    if (!is_directory(found->inode.mode)) {
        return {ENOTDIR};
    }
    return {judge_access(owned(found->inode), call.who, wanted), found};
}

std::uint32_t NameLookups::walk(const Call& call, const WalkRequest& request, const AnswerRoom& room) {
    const FoundDirectory directory = find_directory(call, request.directory, request.name, kMayExecute);
    if (directory.error != 0) {
        return room.error(directory.error);
    }
    const DentryState* const child = state_.store.tables().dentry(request.directory, request.name);
    if (child == nullptr) {
        return room.error(ENOENT);
    }
    return found(call, *child, request.rights, false, room);
}

// mutants: fs-walk-found
std::uint32_t NameLookups::found(const Call& call, const DentryState& child, std::uint32_t rights, bool was_made,
                                 const AnswerRoom& room) {
    WalkAnswer answer;
    answer.was_made = was_made;
    answer.attributes.id = child.child;
    answer.attributes.mode = child.mode;
    if (!state_.is_home(child.child)) {
        return room.ok(answer);
    }
    const InodeState* const inode = state_.inode(child.child);
    if (inode == nullptr) {
        return room.error(ENOENT);
    }
    answer.is_home = true;
    answer.attributes = state_.seen(*inode);
    if (is_symlink(inode->inode.mode)) {
        answer.target = inode->target;
    } else if (rights != 0) {
        // Who makes a file has it open as he wants, whatever its mode says (POSIX, open).
        const int error = was_made ? 0 : judge_open(inode->inode, call.who, rights);
        if (error != 0) {
            return room.error(error);
        }
        state_.leases.open(child.child, call.client);
        answer.is_opened = true;
        answer.proof = state_.grants.give(child.child, call.client, rights).proof;
    }
    return room.ok(answer);
}

// Names whose hashes share their upper bits are listed together, or again: none is left out.
// mutants: fs-list
std::uint32_t NameLookups::list(const Call& call, const ListRequest& request, const AnswerRoom& room) const {
    const InodeState* const directory = state_.inode(request.directory);
    if (directory == nullptr) {
        return room.error(ENOENT);
    }
    if (!is_directory(directory->inode.mode)) {
        return room.error(ENOTDIR);
    }
    if (const int error = judge_access(owned(directory->inode), call.who, kMayRead); error != 0) {
        return room.error(error);
    }
    ListWriter list = room.list();
    const Names* const names = state_.store.tables().names(request.directory);
    if (names == nullptr || request.cursor > (~std::uint64_t{0} >> kPlaceShift)) {
        return list.finish(true);
    }
    auto at = names->from(request.cursor << kPlaceShift);
    while (at != names->end()) {
        const auto& [hash, named] = *at;
        const auto next = std::next(at);
        const bool ends_place = next == names->end() || place_of(next->first) != place_of(hash);
        const ListedName listed{named->state.child, named->state.mode, place_of(hash) + (ends_place ? 1 : 0),
                                named->name()};
        if (!list.add(listed)) {
            return list.finish(false);
        }
        at = next;
    }
    return list.finish(true);
}

}  // namespace cairn::fs
