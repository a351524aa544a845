#include "fs/shard/name_moves.hpp"

#include "fs/shard/move_turns.hpp"

namespace cairn::fs {

namespace {

constexpr Duration kBusy = microseconds(100);  // how long a call waits that met another change, before it is made again

[[nodiscard]] Asker asker_of(const KeptCall& kept) {
    const Call call = kept.call();
    return {call.client, call.slot, kept.sequence()};
}

}  // namespace

std::optional<StepId> NameMoves::begin(const IntentText& intent, Need need, CallToken token) {
    const std::optional<StepId> step = steps_.begin();
    if (!step) {
        state_.replies.error(token, EAGAIN);
        return std::nullopt;
    }
    steps_.put(*step, intent);
    if (!state_.apply(need)) {
        steps_.end(*step);
        state_.replies.error(token, ENOSPC);
        return std::nullopt;
    }
    return step;
}

// If the store is damaged, there is no room. The next start then ends the step.
Co<int> NameMoves::end(StepId step, CallToken token, int error) {
    (void)co_await until_room(state_);
    steps_.put_done(step);
    if (state_.apply(Need::Shrinks)) {
        steps_.end(step);
    }
    state_.replies.error(token, error);
    co_return error;
}

Co<int> NameMoves::end_made(StepId step, const Asker& asker, const Gone::Name& name, bool is_to_go, CallToken token) {
    (void)co_await until_room(state_);
    if (is_to_go) {
        state_.change.put(Gone{name});
    }
    put_answer(asker);
    steps_.put_done(step);
    if (!state_.apply(Need::Shrinks)) {
        state_.replies.error(token, ENOSPC);
        co_return ENOSPC;
    }
    steps_.end(step);
    state_.touch(name.parent);
    state_.replies.ok(token, EmptyAnswer{});
    co_return 0;
}

void NameMoves::put_answer(const Asker& asker) {
    state_.change.put(AnswerRecord{{asker.client, asker.slot}, asker.sequence, 0});
}

LoneTask NameMoves::remove_file(KeptCall kept, Owned directory) {
    const Call call = kept.call();
    const auto request = kept.request<RemoveRequest>();
    ClosedGate gate(state_.gates, gate_of(request.directory, request.name));
    const FileId file = state_.store.tables().dentry(request.directory, request.name)->child;
    const int error = co_await places_.judge_sticky(directory, file, call.who);
    if (error != 0) {
        state_.replies.error(call.token, error);
        co_return;
    }
    (void)co_await until_room(state_);
    state_.change.put(Gone{Gone::Name{request.directory, request.name}});
    put_answer(asker_of(kept));
    const std::optional<StepId> step = steps_.begin();
    if (!step) {
        state_.give_back_change();
        state_.replies.error(call.token, EAGAIN);
        co_return;
    }
    steps_.put(*step, DropName{file});
    if (!state_.apply(Need::Shrinks)) {
        steps_.end(*step);
        state_.replies.error(call.token, ENOSPC);
        co_return;
    }
    state_.touch(request.directory);
    gate.open();
    places_.drop_name(*step, file, call.token);
}

LoneTask NameMoves::remove_directory(KeptCall kept, Owned directory) {
    const Call call = kept.call();
    const auto request = kept.request<RemoveRequest>();
    const ClosedGate gate(state_.gates, gate_of(request.directory, request.name));
    const FileId child = state_.store.tables().dentry(request.directory, request.name)->child;
    const DropDirectory intent{asker_of(kept), request.directory, child,        directory.mode,
                               directory.uid,  directory.gid,     request.name, who_of(call.who)};
    const std::optional<StepId> step = begin(intent, Need::Shrinks, call.token);
    if (step) {
        (void)co_await finish(*step, intent, call.token);
    }
}

Co<int> NameMoves::finish(StepId step, DropDirectory intent, CallToken token) {
    const RemoveDirectoryRequest request{step, intent.child, intent.mode, intent.uid, intent.gid, intent.who};
    const PeerAnswer answer = co_await peers_.insist(state_.home_of(intent.child), request, token);
    if (answer.error != 0 && answer.error != ENOENT) {
        co_return co_await end(step, token, answer.error);
    }
    const Gone::Name name{intent.directory, intent.name};
    co_return co_await end_made(step, intent.asker, name, true, token);
}

LoneTask NameMoves::link(KeptCall kept) {
    const Call call = kept.call();
    const auto request = kept.request<LinkRequest>();
    const ClosedGate gate(state_.gates, gate_of(request.directory, request.name));
    const AddName intent{asker_of(kept), request.file, request.directory, request.name};
    const std::optional<StepId> step = begin(intent, Need::Grows, call.token);
    if (step) {
        (void)co_await finish(*step, intent, call.token);
    }
}

Co<int> NameMoves::finish(StepId step, AddName intent, CallToken token) {
    const CountRequest request{step, intent.file, true};
    const PeerAnswer answer = co_await peers_.insist(state_.home_of(intent.file), request, token);
    if (answer.error != 0) {
        co_return co_await end(step, token, answer.error);
    }
    state_.change.put(Dentry{intent.directory, intent.file, type_of(answer.attributes.mode), intent.name});
    put_answer(intent.asker);
    steps_.put_done(step);
    if (state_.apply(Need::Grows)) {
        steps_.end(step);
        state_.touch(intent.directory);
        state_.replies.ok(token, AttributesAnswer{answer.attributes});
        co_return 0;
    }
    const int taken_back = co_await take_back(step, intent);
    state_.replies.error(token, ENOSPC);
    co_return taken_back;
}

// Takes back the count of a name: the file's home has counted it, but there is no room for it here.
Co<int> NameMoves::take_back(StepId step, const AddName& intent) {
    (void)co_await until_room(state_);
    const StepId back = steps_.next_of(step);
    steps_.put_done(step);
    steps_.put(back, DropName{intent.file});
    if (state_.apply(Need::Shrinks)) {
        places_.drop_name(back, intent.file, kNobody);
    }
    co_return ENOSPC;
}

// Directories move one at a time, so no other move can make a loop after this look.
Co<int> NameMoves::judge_loop(FileId moved, FileId into) {
    FileId at = into;
    while (at != kRoot) {
        if (at == moved) {
            co_return EINVAL;
        }
        const ParentRequest request{at};
        const PeerAnswer answer = co_await peers_.ask(state_.home_of(at), request);
        if (answer.error != 0) {
            co_return answer.error;
        }
        at = answer.attributes.id;
    }
    co_return 0;
}

Co<int> NameMoves::judge_rename(const RenameRequest& request, Owned directory, DentryState child, Credentials who) {
    const int error = co_await places_.judge_sticky(directory, child.child, who);
    if (error != 0 || !is_directory(child.mode) || request.directory == request.to_directory) {
        co_return error;
    }
    const PeerStatRequest stat{child.child};
    const PeerAnswer answer = co_await peers_.ask(state_.home_of(child.child), stat);
    if (answer.error != 0) {
        co_return answer.error;
    }
    const Owned moved{answer.attributes.mode, answer.attributes.uid, answer.attributes.gid};
    const int refused = judge_access(moved, who, kMayWrite);  // the child's ".." changes
    if (refused != 0) {
        co_return refused;
    }
    co_return co_await judge_loop(child.child, request.to_directory);
}

Co<int> NameMoves::take_turn(std::uint64_t turn) {
    for (const Instant due = state_.time.now + MoveTurns::kPatience; has_early_turn_;) {
        if (state_.time.now >= due) {
            co_return kErrorUnreachable;
        }
        co_await state_.peers.until(state_.time.now + kBusy);
    }
    const MoveTurnRequest request{MoveTurnRequest::What::Take, turn};
    const PeerAnswer answer = co_await peers_.ask(state_.home_of(kRoot), request);
    co_return answer.error;
}

LoneTask NameMoves::end_turn(std::uint64_t turn) {
    const MoveTurnRequest request{MoveTurnRequest::What::End, turn};
    CallToken nobody = kNobody;
    (void)co_await peers_.insist(state_.home_of(kRoot), request, nobody);
}

LoneTask NameMoves::end_early_turn() {
    has_early_turn_ = true;
    const MoveTurnRequest request{MoveTurnRequest::What::EndEarly, 0};
    CallToken nobody = kNobody;
    (void)co_await peers_.insist(state_.home_of(kRoot), request, nobody);
    has_early_turn_ = false;
}

// Waits for the turn before it closes a gate: the turn's holder might wait for that gate.
LoneTask NameMoves::rename(KeptCall kept, Owned directory) {
    const Call call = kept.call();
    const auto request = kept.request<RenameRequest>();
    const DentryState child = *state_.store.tables().dentry(request.directory, request.name);
    const bool takes_turns = is_directory(child.mode) && request.directory != request.to_directory;
    const std::uint64_t turn = takes_turns ? steps_.new_number() : 0;
    int error = 0;
    if (takes_turns) {
        error = co_await take_turn(turn);
    }
    if (error == 0) {
        const DentryState* const now = state_.store.tables().dentry(request.directory, request.name);
        const bool is_same = now != nullptr && now->child == child.child;
        const bool is_open = state_.gates.is_open(gate_of(request.directory, request.name));
        error = kErrorBusy;
        if (is_same && is_open) {
            error = co_await rename_named(kept, directory);
        }
    } else {
        state_.replies.error(call.token, EIO);
    }
    if (takes_turns) {
        end_turn(turn);
    }
    if (error == kErrorBusy) {
        co_await state_.peers.until(state_.time.now + kBusy);
        state_.gates.again(std::move(kept));
    }
}

// Yields kErrorBusy if the call must be made again. Otherwise the call is answered.
Co<int> NameMoves::rename_named(const KeptCall& kept, Owned directory) {
    const Call call = kept.call();
    const auto request = kept.request<RenameRequest>();
    const ClosedGate gate(state_.gates, gate_of(request.directory, request.name));
    const DentryState child = *state_.store.tables().dentry(request.directory, request.name);
    const int error = co_await judge_rename(request, directory, child, call.who);
    if (error != 0) {
        state_.replies.error(call.token, error);
        co_return error;
    }
    const MoveName intent{asker_of(kept),     request.directory, request.to_directory, child.child,     child.mode,
                          request.no_replace, request.name,      request.to_name,      who_of(call.who)};
    const std::optional<StepId> step = begin(intent, Need::Grows, call.token);
    if (!step) {
        co_return ENOSPC;  // the call is answered
    }
    co_return co_await finish(*step, intent, call.token);
}

Co<int> NameMoves::finish(StepId step, MoveName intent, CallToken token) {
    const PlaceRequest request{step,           intent.to_directory, intent.child, intent.mode, intent.no_replace,
                               intent.to_name, intent.who};
    const PeerAnswer answer = co_await peers_.insist(owner_of(intent.to_directory, intent.to_name), request, token);
    if (answer.error != 0) {
        co_return co_await end(step, answer.error == kErrorBusy ? kNobody : token, answer.error);
    }
    if (!answer.flag && is_directory(intent.mode) && intent.directory != intent.to_directory) {
        const SetParentRequest parent{intent.child, intent.to_directory};
        (void)co_await peers_.insist(state_.home_of(intent.child), parent, token);
    }
    const Gone::Name name{intent.directory, intent.name};
    co_return co_await end_made(step, intent.asker, name, !answer.flag, token);
}

std::unique_ptr<ClosedGate> NameMoves::close_gate(const IntentText& intent) {
    if (const auto* const add = std::get_if<AddName>(&intent)) {
        return std::make_unique<ClosedGate>(state_.gates, gate_of(add->directory, add->name));
    }
    if (const auto* const move = std::get_if<MoveName>(&intent)) {
        return std::make_unique<ClosedGate>(state_.gates, gate_of(move->directory, move->name));
    }
    if (const auto* const gone = std::get_if<DropDirectory>(&intent)) {
        return std::make_unique<ClosedGate>(state_.gates, gate_of(gone->directory, gone->name));
    }
    return nullptr;
}

LoneTask NameMoves::resume(StepId step, std::vector<std::uint8_t> said, std::unique_ptr<ClosedGate> gate) {
    const std::optional<IntentText> intent = parse_intent(said);
    CAIRN_ASSERT(intent.has_value());
    if (const auto* const drop = std::get_if<DropName>(&*intent)) {
        places_.drop_name(step, drop->file, kNobody);
    } else if (const auto* const add = std::get_if<AddName>(&*intent)) {
        (void)co_await finish(step, *add, kNobody);
    } else if (const auto* const gone = std::get_if<DropDirectory>(&*intent)) {
        (void)co_await finish(step, *gone, kNobody);
    } else if (const auto* const move = std::get_if<MoveName>(&*intent)) {
        const bool takes_turns = takes_turn(*move);
        const std::uint64_t turn = steps_.new_number();
        if (takes_turns) {
            const MoveTurnRequest request{MoveTurnRequest::What::Resume, turn};
            CallToken nobody = kNobody;
            (void)co_await peers_.insist(state_.home_of(kRoot), request, nobody);
        }
        (void)co_await finish(step, *move, kNobody);  // if busy, the name was not placed, and the client asks again
        if (takes_turns) {
            end_turn(turn);
        }
    }
    gate.reset();
}

}  // namespace cairn::fs
