#include "fs/shard/file_calls.hpp"

#include "fs/rules/ranges.hpp"
#include "fs/shard/name_lookups.hpp"

namespace cairn::fs {

std::uint32_t FileCalls::stat(const StatRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const InodeState* const inode = state_.inode(request.file);
    return inode == nullptr ? room.error(state_.error_of_missing(request.file))
                            : room.ok(AttributesAnswer{state_.seen(*inode)});
}

std::uint32_t FileCalls::open(const Call& call, const OpenRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const InodeState* const inode = state_.inode(request.file);
    if (inode == nullptr) {
        return room.error(state_.error_of_missing(request.file));
    }
    const bool had_it = request.proof != 0 && state_.grants.allows(request.file, call.client,
                                                                   {request.rights, request.proof}, request.rights);
    const int error =
        had_it ? judge_kind_of_open(inode->inode, request.rights) : judge_open(inode->inode, call.who, request.rights);
    if (error != 0) {
        return room.error(error);
    }
    state_.leases.open(request.file, {call.client, call.slot, state_.sequence});
    return room.ok(
        OpenAnswer{state_.seen(*inode), state_.grants.give(request.file, call.client, request.rights).proof});
}

std::uint32_t FileCalls::close(const Call& call, const CloseRequest& request, const AnswerRoom& room) {
    if (!state_.leases.close(request.file, {call.client, call.slot, state_.sequence})) {
        return room.error(EBADF);
    }
    const InodeState* const inode = state_.inode(request.file);
    if (inode != nullptr && inode->inode.links == 0 && !state_.may_be_open(request.file)) {
        cutter_.remove(copy_of(*inode));
        if (!state_.apply(Need::Shrinks)) {
            cutter_.remove_later(request.file);
        }
    }
    return room.ok(EmptyAnswer{});
}

std::uint32_t FileCalls::read_link(const ReadLinkRequest& request, const AnswerRoom& room) const {
    const InodeState* const inode = state_.inode(request.file);
    if (inode == nullptr) {
        return room.error(state_.error_of_missing(request.file));
    }
    return is_symlink(inode->inode.mode) ? room.ok(TextAnswer{inode->target}) : room.error(EINVAL);
}

namespace {

// Each judges one attribute, and sets it. Returns 0 or an errno.
int set_mode(const Call& call, const SetAttributesRequest& request, Inode& inode) {
    if ((request.what & kSetMode) == 0) {
        return 0;
    }
    const int error = judge_owner(owned(inode), call.who);
    if (error == 0) {
        inode.mode = mode_after_chmod(owned(inode), call.who, request.mode);
    }
    return error;
}

int set_owner(const Call& call, const SetAttributesRequest& request, Inode& inode) {
    if ((request.what & (kSetUid | kSetGid)) == 0) {
        return 0;
    }
    const std::uint32_t uid = (request.what & kSetUid) != 0 ? request.uid : inode.uid;
    const std::uint32_t gid = (request.what & kSetGid) != 0 ? request.gid : inode.gid;
    const int error = judge_chown(owned(inode), call.who, uid, gid);
    if (error == 0) {
        inode.uid = uid;
        inode.gid = gid;
        inode.mode = is_regular(inode.mode) ? mode_without_ids(inode.mode) : inode.mode;
    }
    return error;
}

int set_times(const Call& call, const SetAttributesRequest& request, const ShardTime& now, Inode& inode) {
    if ((request.what & (kSetAccessed | kSetModified)) != 0) {
        if (const int error = judge_owner(owned(inode), call.who); error != 0) {
            return error;
        }
    } else if ((request.what & kSetTimesNow) != 0) {
        if (judge_owner(owned(inode), call.who) != 0 && judge_access(owned(inode), call.who, kMayWrite) != 0) {
            return EACCES;
        }
    }
    if ((request.what & kSetTimesNow) != 0) {
        inode.accessed_ns = now.wall_ns;
        inode.modified_ns = now.wall_ns;
    }
    if ((request.what & kSetAccessed) != 0) {
        inode.accessed_ns = request.accessed_ns;
    }
    if ((request.what & kSetModified) != 0) {
        inode.modified_ns = request.modified_ns;
    }
    return 0;
}

}  // namespace

int FileCalls::set_size(const Call& call, const SetAttributesRequest& request, Inode& inode) {
    if ((request.what & kSetSize) == 0) {
        return 0;
    }
    if (!is_regular(inode.mode)) {
        return is_directory(inode.mode) ? EISDIR : EINVAL;
    }
    if (request.grant.rights != 0) {
        if (!state_.grants.allows(request.file, call.client, request.grant, kMayWrite)) {
            return EINVAL;
        }
    } else if (const int error = judge_access(owned(inode), call.who, kMayWrite); error != 0) {
        return error;
    }
    if (request.size > longest_file(state_.store.chunk_bytes())) {
        return EFBIG;
    }
    inode.modified_ns = state_.time.wall_ns;
    if (!call.who.is_superuser()) {
        inode.mode = mode_without_ids(inode.mode);
    }
    if (request.size < inode.size) {
        return cutter_.cut(inode, request.size);
    }
    inode.size = request.size;
    return 0;
}

int FileCalls::set(const Call& call, const SetAttributesRequest& request, Inode& inode) {
    int error = set_owner(call, request, inode);
    error = error != 0 ? error : set_mode(call, request, inode);
    error = error != 0 ? error : set_times(call, request, state_.time, inode);
    error = error != 0 ? error : set_size(call, request, inode);
    inode.changed_ns = state_.time.wall_ns;
    return error;
}

FileCalls::Others FileCalls::needs_others(const SetAttributesRequest& request) const {
    const InodeState* const state = state_.inode(request.file);
    if (state_.is_alone() || state == nullptr) {
        return Others::Nothing;
    }
    if (is_directory(state->inode.mode)) {
        return (request.what & (kSetMode | kSetUid | kSetGid)) != 0 ? Others::Recall : Others::Nothing;
    }
    const bool shrinks = (request.what & kSetSize) != 0 && request.size < state->inode.size;
    return shrinks && state->inode.size > state_.store.chunk_bytes() ? Others::Cut : Others::Nothing;
}

std::uint32_t FileCalls::set_attributes(const Call& call, const SetAttributesRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const InodeState* const state = state_.inode(request.file);
    if (state == nullptr) {
        return room.error(state_.error_of_missing(request.file));
    }
    if ((request.what & ~kSetAll) != 0) {
        return room.error(EINVAL);
    }
    if (request.what == 0) {
        return room.ok(AttributesAnswer{state_.seen(*state)});
    }
    if (needs_others(request) == Others::Nothing) {
        return change_here(call, request, room);
    }
    Inode inode = state_.seen_copy(*state);
    const int error = set(call, request, inode);  // a trial
    state_.give_back_change();
    return error != 0 ? room.error(error) : kLater;
}

// A cut that was made counts as a cut again if its request is repeated after a lost answer. So a full store takes it.
std::uint32_t FileCalls::change_here(const Call& call, const SetAttributesRequest& request, const AnswerRoom& room) {
    const InodeState* const state = state_.inode(request.file);
    if (state == nullptr) {
        state_.give_back_change();
        return room.error(ESTALE);
    }
    Inode inode = state_.seen_copy(*state);
    if (const int error = set(call, request, inode); error != 0) {
        state_.give_back_change();
        return room.error(error);
    }
    const bool cuts = (request.what & kSetSize) != 0 && request.size <= state->inode.size;
    state_.change.put(inode);
    if (!state_.apply(cuts ? Need::Shrinks : Need::Grows)) {
        return room.error(ENOSPC);
    }
    state_.touched.erase(request.file);
    if (cuts && inode.size > request.size) {
        cutter_.go_on(request.file, request.size, call.token);
        return kLater;
    }
    return room.ok(AttributesAnswer{state_.seen(*state_.inode(request.file))});
}

}  // namespace cairn::fs
