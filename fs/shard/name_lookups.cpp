#include "fs/shard/name_lookups.hpp"

namespace cairn::fs {

namespace {

// A reader's place is the upper bits of a name's hash. So a client has room for a shard's number next to it.
constexpr unsigned kPlaceShift = 13;

[[nodiscard]] std::uint64_t place_of(std::uint64_t hash) noexcept {
    return hash >> kPlaceShift;
}

}  // namespace

int judge_kind_of_open(const Inode& inode, std::uint32_t rights) noexcept {
    if ((rights & ~(kMayRead | kMayWrite)) != 0) {
        return EINVAL;
    }
    if (is_symlink(inode.mode)) {
        return ELOOP;
    }
    return is_directory(inode.mode) && (rights & kMayWrite) != 0 ? EISDIR : 0;
}

int judge_open(const Inode& inode, const Credentials& who, std::uint32_t rights) noexcept {
    const int error = judge_kind_of_open(inode, rights);
    return error != 0 ? error : judge_access(owned(inode), who, rights);
}

FoundDirectory NameLookups::find(const FileId& directory) {
    if (directory.home_slot() >= kSlots) {
        return {ENOENT};
    }
    if (!state_.is_home(directory)) {
        if (state_.borrowed.find(directory, state_.time.now) == nullptr) {
            lending_.borrow(directory);  // if the home is lost, this is known at once
        }
        const BorrowedDirectories::Entry* const borrowed = state_.borrowed.find(directory, state_.time.now);
        if (borrowed != nullptr) {
            return {borrowed->error, borrowed->owned};
        }
        state_.waits_for = {Gate::Kind::Attributes, directory, {}};
        return {kErrorWaits};
    }
    if (state_.waits_for_file(directory)) {
        return {kErrorWaits};
    }
    const InodeState* const found = state_.inode(directory);
    if (found == nullptr || found->inode.links == 0) {
        return {ENOENT};
    }
    return {is_directory(found->inode.mode) ? 0 : ENOTDIR, owned(found->inode)};
}

FoundDirectory NameLookups::find_directory(const Credentials& who, const FileId& directory, std::string_view name,
                                           std::uint32_t wanted) {
    if (const int error = judge_name(name); error != 0) {
        return {error};
    }
    if (!state_.is_mine(state_.slot_of(directory, name))) {
        return {kErrorOtherShard};
    }
    FoundDirectory found = find(directory);
    if (found.error == 0) {
        found.error = judge_access(found.owned, who, wanted);
    }
    return found;
}

std::uint32_t NameLookups::walk(const Call& call, const WalkRequest& request, const AnswerRoom& room) {
    const FoundDirectory directory = find_directory(call.who, request.directory, request.name, kMayExecute);
    if (directory.error != 0) {
        return refuse(directory, room);
    }
    const DentryState* const child = state_.store.tables().dentry(request.directory, request.name);
    if (child == nullptr) {
        return room.error(ENOENT);
    }
    return found(call, *child, request.rights, false, room);
}

std::uint32_t NameLookups::found(const Call& call, const DentryState& child, std::uint32_t rights, bool was_made,
                                 const AnswerRoom& room) {
    WalkAnswer answer;
    answer.was_made = was_made;
    answer.attributes.id = child.child;
    answer.attributes.mode = child.mode;
    if (!state_.is_home(child.child)) {
        return room.ok(answer);
    }
    if (state_.waits_for_file(child.child)) {
        return kWaits;
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
        // The maker of a file may open it with any rights, whatever its mode says (POSIX, open).
        const int error =
            was_made ? judge_kind_of_open(inode->inode, rights) : judge_open(inode->inode, call.who, rights);
        if (error != 0) {
            return room.error(error);
        }
        state_.leases.open(child.child, {call.client, call.slot, state_.sequence});
        answer.is_opened = true;
        answer.proof = state_.grants.give(child.child, call.client, rights).proof;
    }
    return room.ok(answer);
}

// Names whose hashes share their upper bits are listed together, or again. So none is left out.
std::uint32_t NameLookups::list(const Call& call, const ListRequest& request, const AnswerRoom& room) {
    FoundDirectory directory = find(request.directory);
    if (directory.error == ENOENT &&
        (!state_.is_home(request.directory) || state_.inode(request.directory) != nullptr)) {
        return room.list().finish(true);  // the directory is removed, and still open at its home
    }
    if (directory.error == 0) {
        directory.error = judge_access(directory.owned, call.who, kMayRead);
    }
    if (directory.error != 0) {
        return refuse(directory, room);
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
