#include "fs/shard/lending.hpp"

#include <algorithm>
#include <deque>

namespace cairn::fs {

namespace {

constexpr Duration kUnreachableFor = milliseconds(100);
constexpr Duration kTellTouchedEvery = milliseconds(1);

}  // namespace

void Lending::borrow(const FileId& directory) {
    if (state_.gates.is_open({Gate::Kind::Attributes, directory, {}})) {
        ask_home(directory);
    }
}

LoneTask Lending::ask_home(FileId directory) {
    const ClosedGate gate(state_.gates, {Gate::Kind::Attributes, directory, {}});
    const Instant asked_at = state_.time.now;
    const LendRequest request{directory};
    const PeerAnswer answer = co_await state_.peers.ask(state_.home_of(directory), request);
    const Owned owned{answer.attributes.mode, answer.attributes.uid, answer.attributes.gid};
    const Instant until = answer.error == kErrorUnreachable ? state_.time.now + kUnreachableFor : asked_at + kLendTerm;
    state_.borrowed.put(directory, {answer.error, owned, until});
}

Co<PeerAnswer> Lending::lend(ShardNumber to, LendRequest request) {
    const Gate gate{Gate::Kind::File, request.directory, {}};
    while (!state_.gates.is_open(gate)) {
        co_await state_.gates.opened(gate);
    }
    const InodeState* const inode = state_.inode(request.directory);
    if (inode == nullptr || inode->inode.links == 0) {
        co_return PeerAnswer{ENOENT};
    }
    if (!is_directory(inode->inode.mode)) {
        co_return PeerAnswer{ENOTDIR};
    }
    state_.lent.lend(request.directory, to, state_.time.now);
    co_return PeerAnswer{0, false, attributes_of(inode->inode)};
}

// An earlier life of this shard may have lent to any shard. A shard that answers has let go of that, too. It has lost
// this shard and found it again, so no message of the earlier life is on its way.
std::vector<LentDirectories::Borrower> Lending::who_may_have(const FileId& directory) {
    const Instant earlier_until = state_.lent.earlier_until();
    if (state_.time.now >= earlier_until) {
        return state_.lent.borrowers(directory, state_.time.now);
    }
    const Instant until = std::max(earlier_until, state_.time.now + kLendTerm + kLendDrift);
    std::vector<LentDirectories::Borrower> all;
    for (ShardNumber shard = 0; shard != state_.facts.table.shards(); ++shard) {
        if (shard != state_.number) {
            all.push_back({shard, until});
        }
    }
    return all;
}

Co<bool> Lending::recall(FileId directory) {
    const RecallRequest request{directory};
    const std::vector<LentDirectories::Borrower> borrowers = who_may_have(directory);
    std::deque<Peers::Asked> asked;
    for (const LentDirectories::Borrower& borrower : borrowers) {
        asked.emplace_back(state_.peers, borrower.shard, request);
    }
    for (std::size_t i = 0; i != asked.size(); ++i) {
        const PeerAnswer answer = co_await asked[i];
        if (answer.error == kErrorUnreachable) {
            co_await state_.peers.until(borrowers[i].until);
        }
        state_.lent.give_back(directory, borrowers[i].shard);
    }
    co_return true;
}

bool Lending::has_names(const FileId& directory) const {
    const Names* const names = state_.store.tables().names(directory);
    return (names != nullptr && !names->empty()) || state_.gates.any_name_of(directory);
}

// A shard that has borrowed nothing may have names, too. A shard that answers has let go of what an earlier life lent.
Co<int> Lending::judge_empty(FileId directory) {
    if (has_names(directory)) {
        co_return ENOTEMPTY;
    }
    const RecallRequest request{directory};
    std::deque<Peers::Asked> asked;
    for (ShardNumber shard = 0; shard != state_.facts.table.shards(); ++shard) {
        if (shard != state_.number) {
            asked.emplace_back(state_.peers, shard, request);
        }
    }
    int error = 0;
    for (Peers::Asked& one : asked) {
        const PeerAnswer answer = co_await one;
        const int found = answer.error != 0 ? kErrorUnreachable : answer.flag ? ENOTEMPTY : 0;
        error = error == ENOTEMPTY || found == 0 ? error : found;
    }
    co_return error;
}

PeerAnswer Lending::give_back(const RecallRequest& request) {
    state_.borrowed.drop(request.directory);
    return {0, has_names(request.directory)};
}

void Lending::tell_touched() {
    if (state_.time.now < touched_due_) {
        return;
    }
    for (auto at = state_.touched.begin(); at != state_.touched.end();) {
        if (state_.is_home(at->first)) {
            ++at;
            continue;
        }
        const TouchRequest request{at->first, at->second};
        state_.peers.tell(state_.home_of(at->first), request);
        at = state_.touched.erase(at);
        touched_due_ = state_.time.now + kTellTouchedEvery;
    }
}

}  // namespace cairn::fs
