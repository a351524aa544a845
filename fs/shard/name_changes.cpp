#include "fs/shard/name_changes.hpp"

#include <algorithm>

namespace cairn::fs {

NameChanges::NameChanges(ShardState& state, NameLookups& lookups, Counts& counts, NameMoves& moves, std::uint64_t seed)
    : state_(state), lookups_(lookups), counts_(counts), moves_(moves), seed_(seed) {
    state_.store.tables().inodes().for_each(
        [&](const FileId& id, const InodeState& /*unused*/) { serial_ = std::max(serial_, id.serial()); });
}

// Another file may have had this serial number before a restart. The seed was another one then.
FileId NameChanges::new_id(std::uint16_t slot) noexcept {
    const std::uint64_t place = (std::uint64_t{slot} << 48U) | (++serial_ & 0xffffffffffffU);
    return {place, sip_hash(state_.facts.cluster_key, place, seed_)};
}

Inode NameChanges::make_inode(const Call& call, const CreateRequest& request, const Owned& directory) {
    const Owned owned = made_in(directory, call.who, request.mode);
    Inode inode;
    inode.id = new_id(state_.slot_of(request.directory, request.name));
    inode.mode = owned.mode;
    inode.uid = owned.uid;
    inode.gid = owned.gid;
    inode.links = 1;
    inode.born_ns = inode.modified_ns = inode.changed_ns = inode.accessed_ns = state_.time.wall_ns;
    if (is_symlink(owned.mode)) {
        inode.target = request.target;
        inode.size = request.target.size();
    } else if (is_directory(owned.mode)) {
        inode.target = text_of(request.directory);
    }
    return inode;
}

namespace {

// Returns what is kept of a call that made a file. It is negative; other calls keep no negative numbers. Clients choose
// some of the numbers.
[[nodiscard]] std::int64_t outcome_of(const FileId& made) noexcept {
    return static_cast<std::int64_t>(made.random | std::uint64_t{1} << 63U);
}

[[nodiscard]] int judge_kind(const CreateRequest& request) noexcept {
    if ((request.mode & ~kModeBits) != 0) {
        return EINVAL;
    }
    if (is_symlink(request.mode)) {
        return request.target.empty() ? ENOENT : request.target.size() > kLongestPath ? ENAMETOOLONG : 0;
    }
    const bool is_kind = is_regular(request.mode) || is_directory(request.mode);
    const bool may_open = is_regular(request.mode) || (request.rights & kMayWrite) == 0;
    return is_kind && may_open && request.target.empty() && (request.rights & ~(kMayRead | kMayWrite)) == 0 ? 0
                                                                                                            : EINVAL;
}

}  // namespace

std::uint32_t NameChanges::create(const Call& call, const CreateRequest& request, const AnswerRoom& room) {
    const FoundDirectory directory = lookups_.find_directory(call.who, request.directory, request.name, kMayExecute);
    if (directory.error != 0) {
        return NameLookups::refuse(directory, room);
    }
    if (must_wait(request.directory, request.name, nullptr)) {
        return kWaits;
    }
    if (const DentryState* const there = state_.store.tables().dentry(request.directory, request.name)) {
        return request.exclusive ? room.error(EEXIST) : lookups_.found(call, *there, request.rights, false, room);
    }
    int error = judge_access(directory.owned, call.who, kMayWrite);
    error = error != 0 ? error : judge_kind(request);
    if (error != 0) {
        return room.error(error);
    }
    const Inode inode = make_inode(call, request, directory.owned);
    state_.change.put(inode);
    state_.change.put(Dentry{request.directory, inode.id, type_of(inode.mode), request.name});
    if (!state_.apply_answered(call, Need::Grows, outcome_of(inode.id))) {
        return room.error(ENOSPC);
    }
    state_.touch(request.directory);
    return lookups_.found(call, {inode.id, type_of(inode.mode)}, request.rights, true, room);
}

// The maker of a file has it open with any rights. So the name must still be that file's, whatever the request says.
std::uint32_t NameChanges::create_again(const Call& call, const CreateRequest& request, std::int64_t outcome,
                                        const AnswerRoom& room) {
    const DentryState* const child = state_.store.tables().dentry(request.directory, request.name);
    if (child == nullptr || outcome_of(child->child) != outcome) {
        return room.error(ENOENT);
    }
    return lookups_.found(call, *child, request.rights, true, room);
}

bool NameChanges::must_wait(const FileId& directory, std::string_view name, const DentryState* child) {
    if (!state_.gates.any()) {
        return false;
    }
    state_.waits_for = {Gate::Kind::Name, directory, std::string(name)};
    return !state_.gates.is_open(state_.waits_for) || (child != nullptr && state_.waits_for_file(child->child));
}

// Judges whether a caller may take a child's name out of a directory. `is_to_be_directory`: the child must be one, or
// must not.
int NameChanges::judge_gone(const Call& call, const Owned& directory, const DentryState& child,
                            bool is_to_be_directory) const {
    const InodeState* const inode = state_.inode(child.child);
    if (inode == nullptr) {
        return ENOENT;
    }
    if (const int error = judge_removal(directory, owned(inode->inode), call.who); error != 0) {
        return error;
    }
    const bool is_one = is_directory(inode->inode.mode);
    if (is_one != is_to_be_directory) {
        return is_one ? EISDIR : ENOTDIR;
    }
    const Names* const names = is_one ? state_.store.tables().names(child.child) : nullptr;
    return names != nullptr && !names->empty() ? ENOTEMPTY : 0;
}

std::uint32_t NameChanges::remove(const Call& call, const RemoveRequest& request, const AnswerRoom& room) {
    const FoundDirectory directory =
        lookups_.find_directory(call.who, request.directory, request.name, kMayExecute | kMayWrite);
    if (directory.error != 0) {
        return NameLookups::refuse(directory, room);
    }
    const DentryState* const child = state_.store.tables().dentry(request.directory, request.name);
    if (must_wait(request.directory, request.name, child)) {
        return kWaits;
    }
    if (child == nullptr) {
        return room.error(ENOENT);
    }
    if (!is_local(*child)) {
        const bool is_one = is_directory(child->mode);
        if (is_one != request.is_directory) {
            return room.error(is_one ? EISDIR : ENOTDIR);
        }
        is_one ? moves_.remove_directory(KeptCall(call), directory.owned)
               : moves_.remove_file(KeptCall(call), directory.owned);
        return kLater;
    }
    if (const int error = judge_gone(call, directory.owned, *child, request.is_directory); error != 0) {
        return room.error(error);
    }
    const InodeState& inode = *state_.inode(child->child);
    state_.change.put(Gone{Gone::Name{request.directory, request.name}});
    state_.touched.erase(child->child);
    counts_.take_name(inode);
    if (!state_.apply_answered(call, Need::Shrinks)) {
        return room.error(ENOSPC);
    }
    state_.touch(request.directory);
    return room.ok(EmptyAnswer{});
}

bool NameChanges::is_within(const FileId& directory, const FileId& outer) const {
    for (std::optional<FileId> at = directory; at;) {
        if (*at == outer) {
            return true;
        }
        const InodeState* const state = *at == kRoot ? nullptr : state_.inode(*at);
        at = state == nullptr ? std::nullopt : parent_of(*state);
    }
    return false;
}

int NameChanges::judge_move(const Call& call, const RenameRequest& request, const Owned& directory,
                            const Owned& to_directory, const DentryState& child) const {
    const InodeState* const moved = state_.inode(child.child);
    if (moved == nullptr) {
        return ENOENT;
    }
    if (const int error = judge_removal(directory, owned(moved->inode), call.who); error != 0) {
        return error;
    }
    const bool moves_directory = is_directory(moved->inode.mode);
    if (moves_directory && request.directory != request.to_directory) {
        if (is_within(request.to_directory, child.child)) {
            return EINVAL;
        }
        // The child's ".." changes.
        if (const int error = judge_access(owned(moved->inode), call.who, kMayWrite); error != 0) {
            return error;
        }
    }
    const DentryState* const there = state_.store.tables().dentry(request.to_directory, request.to_name);
    if (there == nullptr) {
        return 0;
    }
    return request.no_replace ? EEXIST : judge_gone(call, to_directory, *there, moves_directory);
}

std::uint32_t NameChanges::rename(const Call& call, const RenameRequest& request, const AnswerRoom& room) {
    if (const int error = judge_name(request.to_name); error != 0) {
        return room.error(error);
    }
    const FoundDirectory from =
        lookups_.find_directory(call.who, request.directory, request.name, kMayExecute | kMayWrite);
    if (from.error != 0) {
        return NameLookups::refuse(from, room);
    }
    const DentryState* const child = state_.store.tables().dentry(request.directory, request.name);
    if (must_wait(request.directory, request.name, child)) {
        return kWaits;
    }
    if (child == nullptr) {
        return room.error(ENOENT);
    }
    if (request.directory == request.to_directory && request.name == request.to_name) {
        return request.no_replace ? room.error(EEXIST) : room.ok(EmptyAnswer{});
    }
    const bool is_here = state_.is_mine(state_.slot_of(request.to_directory, request.to_name));
    const DentryState* const there =
        is_here ? state_.store.tables().dentry(request.to_directory, request.to_name) : nullptr;
    if (is_here && is_local(*child) && (there == nullptr || is_local(*there))) {
        return rename_here(call, request, from.owned, room);
    }
    moves_.rename(KeptCall(call), from.owned);
    return kLater;
}

std::uint32_t NameChanges::rename_here(const Call& call, const RenameRequest& request, const Owned& directory,
                                       const AnswerRoom& room) {
    const FoundDirectory to =
        lookups_.find_directory(call.who, request.to_directory, request.to_name, kMayExecute | kMayWrite);
    if (to.error != 0) {
        return NameLookups::refuse(to, room);
    }
    const DentryState child = *state_.store.tables().dentry(request.directory, request.name);
    const DentryState* const there = state_.store.tables().dentry(request.to_directory, request.to_name);
    if (must_wait(request.to_directory, request.to_name, there)) {
        return kWaits;
    }
    if (there != nullptr && there->child == child.child && !request.no_replace) {
        return room.ok(EmptyAnswer{});  // two names of one file both stay (POSIX, rename)
    }
    if (const int error = judge_move(call, request, directory, to.owned, child); error != 0) {
        return room.error(error);
    }
    put_renamed(request, child, there);
    if (!state_.apply_answered(call, there != nullptr ? Need::Shrinks : Need::Grows)) {
        return room.error(ENOSPC);
    }
    state_.touch(request.directory);
    state_.touch(request.to_directory);
    return room.ok(EmptyAnswer{});
}

void NameChanges::put_renamed(const RenameRequest& request, const DentryState& child, const DentryState* there) {
    Inode moved = copy_of(*state_.inode(child.child));
    moved.changed_ns = state_.time.wall_ns;
    if (is_directory(moved.mode)) {
        moved.target = text_of(request.to_directory);
    }
    state_.change.put(Gone{Gone::Name{request.directory, request.name}});
    if (there != nullptr) {
        counts_.take_name(*state_.inode(there->child));
    }
    state_.change.put(Dentry{request.to_directory, child.child, child.mode, request.to_name});
    state_.change.put(moved);
}

std::uint32_t NameChanges::link(const Call& call, const LinkRequest& request, const AnswerRoom& room) {
    const FoundDirectory directory =
        lookups_.find_directory(call.who, request.directory, request.name, kMayExecute | kMayWrite);
    if (directory.error != 0) {
        return NameLookups::refuse(directory, room);
    }
    const DentryState of_file{request.file};
    if (must_wait(request.directory, request.name, &of_file)) {
        return kWaits;
    }
    if (state_.store.tables().dentry(request.directory, request.name) != nullptr) {
        return room.error(EEXIST);
    }
    if (request.file.home_slot() >= kSlots) {
        return room.error(ENOENT);
    }
    if (!state_.is_home(request.file)) {
        moves_.link(KeptCall(call));
        return kLater;
    }
    const InodeState* const state = state_.inode(request.file);
    Inode inode;
    if (const int error = Counts::judge_more(state); error != 0) {
        return room.error(error);
    }
    inode = copy_of(*state);
    ++inode.links;
    inode.changed_ns = state_.time.wall_ns;
    state_.change.put(inode);
    state_.change.put(Dentry{request.directory, inode.id, type_of(inode.mode), request.name});
    if (!state_.apply_answered(call, Need::Grows)) {
        return room.error(ENOSPC);
    }
    state_.touch(request.directory);
    return room.ok(AttributesAnswer{state_.seen(*state_.inode(request.file))});
}

}  // namespace cairn::fs
