#include "fs/shard/cuts.hpp"

#include <deque>

namespace cairn::fs {

namespace {

constexpr Duration kPatience = seconds(1);  // for blocks that other cuts of the turn have taken, and will give back

}  // namespace

// Asks all other shards to cut, again and again until all have done so.
Co<bool> Cuts::cut_elsewhere(FileId file, std::uint64_t size, CallToken& token) {
    const InodeState* const inode = state_.inode(file);
    if (inode == nullptr) {
        co_return true;
    }
    const CutRequest request{file, size, inode->inode.size, inode->inode.generation + 1};
    std::vector<ShardNumber> left;
    for (ShardNumber shard = 0; shard != state_.facts.table.shards(); ++shard) {
        if (shard != state_.number) {
            left.push_back(shard);
        }
    }
    while (!left.empty()) {
        std::deque<Peers::Asked> asked;
        for (const ShardNumber shard : left) {
            asked.emplace_back(state_.peers, shard, request);
        }
        std::vector<ShardNumber> again;
        for (std::size_t i = 0; i != left.size(); ++i) {
            const PeerAnswer answer = co_await asked[i];
            if (answer.error != 0) {
                again.push_back(left[i]);
            }
        }
        left = again;
        if (!left.empty()) {
            state_.replies.error(token, EIO);
            token = kNobody;
            co_await state_.peers.until(state_.time.now + PeerCalls::kRetry);
        }
    }
    co_return true;
}

// If the store is damaged, there is no room. The next start then cuts to the same size again, which changes nothing.
Co<bool> Cuts::end(StepId step) {
    (void)co_await until_room(state_);
    steps_.put_done(step);
    if (state_.apply(Need::Shrinks)) {
        steps_.end(step);
    }
    co_return true;
}

LoneTask Cuts::cut(KeptCall kept) {
    const auto request = kept.request<SetAttributesRequest>();
    Call call = kept.call();
    ClosedGate gate(state_.gates, {Gate::Kind::File, request.file, {}});
    const std::optional<StepId> step = steps_.begin();
    if (!step) {
        state_.replies.error(call.token, EAGAIN);
        co_return;
    }
    steps_.put(*step, CutFile{request.file, request.size});
    if (!state_.apply(Need::Shrinks)) {
        steps_.end(*step);
        state_.replies.error(call.token, ENOSPC);
        co_return;
    }
    co_await cut_elsewhere(request.file, request.size, call.token);
    (void)co_await until_room(state_);
    // The intent ends with the same change: a writer may have made the file longer before the next restart.
    steps_.put_done(*step);
    const std::uint32_t bytes = files_.change_here(call, request, state_.replies.room());
    if (bytes != kLater) {
        state_.replies.stage(call.token, bytes);
    }
    if (state_.store.tables().intents().find(Steps::number_of(*step)) != nullptr) {
        co_await end(*step);
    } else {
        steps_.end(*step);
    }
    gate.open();
}

LoneTask Cuts::resume(StepId step, CutFile intent, std::unique_ptr<ClosedGate> /*gate*/) {
    CallToken nobody = kNobody;
    co_await cut_elsewhere(intent.file, intent.size, nobody);
    (void)co_await until_room(state_);
    const InodeState* const state = state_.inode(intent.file);
    if (state == nullptr || state->inode.size <= intent.size) {
        co_await end(step);
        co_return;
    }
    Inode inode = copy_of(*state);
    steps_.put_done(step);
    if (cutter_.cut(inode, intent.size) != 0) {
        state_.give_back_change();
        co_await end(step);
        co_return;
    }
    state_.change.put(inode);
    if (!state_.apply(Need::Shrinks)) {
        co_await end(step);
        co_return;
    }
    steps_.end(step);
    if (inode.size > intent.size) {
        cutter_.go_on(intent.file, intent.size, kNobody);
    }
}

LoneTask Cuts::remove(FileId file) {
    CallToken nobody = kNobody;
    co_await cut_elsewhere(file, 0, nobody);
    cutter_.remove_here(file);
}

Co<PeerAnswer> Cuts::cut_chunks(CutRequest request) {
    const Instant due = state_.time.now + kPatience;
    std::uint64_t to = request.to;
    while (to > request.from) {
        (void)co_await until_room(state_);
        if (cutter_.cut_chunks(request.file, request.generation, request.from, to) != 0) {
            state_.give_back_change();
            if (state_.time.now >= due) {
                co_return PeerAnswer{ENOSPC};
            }
        }
        if (!state_.change.records().empty() && !state_.apply(Need::Shrinks)) {
            co_return PeerAnswer{ENOSPC};
        }
        if (to > request.from) {
            co_await state_.peers.until(state_.time.now + nanoseconds(1));
        }
    }
    co_return PeerAnswer{};
}

}  // namespace cairn::fs
