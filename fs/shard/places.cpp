#include "fs/shard/places.hpp"

namespace cairn::fs {

namespace {

constexpr Duration kLook = microseconds(100);

}  // namespace

Co<int> Places::judge_sticky(Owned directory, FileId file, Credentials who) {
    constexpr std::uint32_t kSticky = 01000;
    if ((directory.mode & kSticky) == 0 || who.is_superuser() || who.uid == directory.uid) {
        co_return 0;
    }
    const PeerStatRequest request{file};
    const PeerAnswer answer = co_await peers_.ask(state_.home_of(file), request);
    if (answer.error != 0) {
        co_return answer.error;
    }
    const Owned owned{answer.attributes.mode, answer.attributes.uid, answer.attributes.gid};
    co_return judge_removal(directory, owned, who);
}

LoneTask Places::drop_name(StepId step, FileId file, CallToken token) {
    const CountRequest request{step, file, false};
    (void)co_await peers_.insist(state_.home_of(file), request, token);
    (void)co_await until_room(state_);
    steps_.put_done(step);
    if (state_.apply(Need::Shrinks)) {  // if not, the next start asks again, and learns that it was done
        steps_.end(step);
    }
    state_.replies.ok(token, EmptyAnswer{});
}

Co<FoundDirectory> Places::find_directory(FileId directory, std::string_view name, Credentials who) {
    for (;;) {
        const FoundDirectory found = lookups_.find_directory(who, directory, name, kMayExecute | kMayWrite);
        if (found.error != kErrorWaits) {
            co_return found;
        }
        const Gate gate = state_.waits_for;
        co_await state_.gates.opened(gate);
    }
}

// Judges a name that is to be replaced. If it names a directory, that directory is removed at once.
Co<int> Places::judge_replaced(const PlaceRequest& request, Owned directory, DentryState there, Credentials who) {
    if (request.no_replace) {
        co_return EEXIST;
    }
    const bool is_one = is_directory(there.mode);
    if (is_one != is_directory(request.mode)) {
        co_return is_one ? EISDIR : ENOTDIR;
    }
    if (!is_one) {
        co_return co_await judge_sticky(directory, there.child, who);
    }
    const std::optional<StepId> step = steps_.begin();
    if (!step) {
        co_return EAGAIN;
    }
    RemoveDirectoryRequest remove{*step, there.child, directory.mode, directory.uid, directory.gid, request.who};
    const PeerAnswer answer = co_await peers_.ask(state_.home_of(there.child), remove);
    steps_.end(*step);
    co_return answer.error == ENOENT ? 0 : answer.error;  // the same step removed it before a restart
}

int Places::put_name(ShardNumber from, const PlaceRequest& request, std::optional<DentryState> there) {
    std::optional<StepId> drop;
    const bool loses_file = there && !is_directory(there->mode);
    if (loses_file) {
        drop = steps_.begin();
        if (!drop) {
            return EAGAIN;
        }
        steps_.put(*drop, DropName{there->child});
    }
    state_.change.put(Dentry{request.directory, request.child, request.mode, request.name});
    steps_.put_made(from, request.step);
    if (!state_.apply(there ? Need::Shrinks : Need::Grows)) {
        if (drop) {
            steps_.end(*drop);
        }
        return ENOSPC;
    }
    state_.touch(request.directory);
    if (drop) {
        drop_name(*drop, there->child, kNobody);
    }
    return 0;
}

// A step may come again while it is under way, from a shard that has ended and come back. A step of a shard with a
// lower number may wait while its own name is closed; other steps fail as busy. So steps never wait in a circle.
Co<PeerAnswer> Places::place(ShardNumber from, PlaceRequest request) {
    const std::pair<ShardNumber, std::uint64_t> key{from, Steps::number_of(request.step)};
    while (placing_.contains(key)) {
        co_await state_.peers.until(state_.time.now + kLook);
    }
    if (steps_.was_made(from, request.step)) {
        co_return PeerAnswer{};
    }
    const Gate name_gate{Gate::Kind::Name, request.directory, std::string(request.name)};
    placing_.insert(key);
    while (from < state_.number && !state_.gates.is_open(name_gate)) {
        co_await state_.gates.opened(name_gate);
    }
    PeerAnswer answer{kErrorBusy};
    if (state_.gates.is_open(name_gate)) {
        answer = co_await place_named(from, request, name_gate);
    }
    placing_.erase(key);
    co_return answer;
}

Co<PeerAnswer> Places::place_named(ShardNumber from, const PlaceRequest& request, const Gate& name_gate) {
    const ClosedGate gate(state_.gates, name_gate);
    std::vector<std::uint32_t> groups;
    const Credentials who = credentials_of(request.who, groups);
    const FoundDirectory directory = co_await find_directory(request.directory, request.name, who);
    if (directory.error != 0) {
        co_return PeerAnswer{directory.error};
    }
    std::optional<DentryState> there;
    if (const DentryState* const found = state_.store.tables().dentry(request.directory, request.name)) {
        there = *found;
        if (there->child == request.child && !request.no_replace) {
            co_return PeerAnswer{0, true};
        }
        const int error = co_await judge_replaced(request, directory.owned, *there, who);
        if (error != 0) {
            co_return PeerAnswer{error};
        }
        (void)co_await until_room(state_);
    }
    co_return PeerAnswer{put_name(from, request, there)};
}

Co<PeerAnswer> Places::remove_directory(ShardNumber from, RemoveDirectoryRequest request) {
    const Gate file_gate{Gate::Kind::File, request.directory, {}};
    while (!state_.gates.is_open(file_gate)) {
        co_await state_.gates.opened(file_gate);
    }
    if (steps_.was_made(from, request.step)) {
        co_return PeerAnswer{};
    }
    const InodeState* found = state_.inode(request.directory);
    if (found == nullptr || found->inode.links == 0) {
        co_return PeerAnswer{ENOENT};
    }
    std::vector<std::uint32_t> groups;
    const Owned parent{request.parent_mode, request.parent_uid, request.parent_gid};
    const int refused = judge_removal(parent, owned(found->inode), credentials_of(request.who, groups));
    if (refused != 0 || !is_directory(found->inode.mode)) {
        co_return PeerAnswer{refused != 0 ? refused : ENOTDIR};
    }
    const ClosedGate gate(state_.gates, file_gate);
    const int error = co_await lending_.judge_empty(request.directory);
    if (error != 0) {
        co_return PeerAnswer{error};
    }
    (void)co_await until_room(state_);
    counts_.take_name(*state_.inode(request.directory));
    steps_.put_made(from, request.step);
    if (!state_.apply(Need::Shrinks)) {
        co_return PeerAnswer{ENOSPC};
    }
    state_.touched.erase(request.directory);
    co_return PeerAnswer{};
}

PeerAnswer Places::parent(const ParentRequest& request) const {
    const InodeState* const found = state_.inode(request.directory);
    const std::optional<FileId> parent = found == nullptr ? std::nullopt : parent_of(*found);
    PeerAnswer answer{parent ? 0 : ENOENT};
    answer.attributes.id = parent.value_or(FileId{});
    return answer;
}

Co<PeerAnswer> Places::set_parent(SetParentRequest request) {
    (void)co_await until_room(state_);
    const InodeState* const found = state_.inode(request.directory);
    if (found == nullptr) {
        co_return PeerAnswer{ENOENT};
    }
    Inode inode = copy_of(*found);
    inode.target = text_of(request.parent);
    inode.changed_ns = state_.time.wall_ns;
    state_.change.put(inode);
    co_return PeerAnswer{state_.apply(Need::Shrinks) ? 0 : ENOSPC};
}

}  // namespace cairn::fs
