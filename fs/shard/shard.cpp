// A shard's parts, and its turn.
#include "fs/shard/shard.hpp"

#include <algorithm>
#include <vector>

#include "fs/shard/background.hpp"
#include "fs/shard/client_calls.hpp"
#include "fs/shard/peer_service.hpp"

namespace cairn::fs {

struct Shard::Parts {
    Parts(Store& store, ShardHost& host, const ClusterFacts& cluster, ShardNumber number, std::uint64_t seed,
          const ShardTime& time, std::optional<std::uint32_t> own_user)
        : peers(host, number, seed),
          replies(store, host, peers, cluster.table.epoch()),
          state{store,
                cluster,
                Placement(cluster.spread, cluster.daemons, cluster.placement_key),
                number,
                Grants(cluster.cluster_key),
                peers,
                replies,
                LentDirectories(store.tables().inodes().size() == 0 ? Instant{} : time.now),
                time},
          peer_calls(state),
          steps(state, seed),
          cutter(state),
          kept(state, time.now),
          lending(state),
          lookups(state, lending),
          files(state, cutter),
          data(state),
          cuts(state, steps, cutter, files),
          counts(state, steps, cutter),
          places(state, peer_calls, steps, lookups, lending, counts),
          moves(state, peer_calls, steps, places),
          changes(state, lookups, counts, moves, seed),
          turns(state),
          service(state, lending, counts, cuts, places, turns),
          calls(state, {lookups, changes, files, data, cuts, lending, kept, cutter}, own_user),
          background(state, cutter, cuts, lending, kept) {
        peers.begin_turn(time.now);
        peer_calls.set_handler(service);
        state.grace_ends = store.tables().inodes().size() == 0 ? Instant{} : kept.grace_ends();
    }

    Peers peers;
    Replies replies;
    ShardState state;
    PeerCalls peer_calls;
    Steps steps;
    Cutter cutter;
    KeptAnswers kept;
    Lending lending;
    NameLookups lookups;
    FileCalls files;
    DataCalls data;
    Cuts cuts;
    Counts counts;
    Places places;
    NameMoves moves;
    NameChanges changes;
    MoveTurns turns;
    PeerService service;
    ClientCalls calls;
    Background background;

    void make_root();
    void resume_intents();
    void run_ready();
};

void Shard::Parts::make_root() {
    if (!state.is_home(kRoot) || state.inode(kRoot) != nullptr) {
        return;
    }
    Inode root;
    root.id = kRoot;
    root.mode = 0041777;
    root.links = 1;
    root.born_ns = root.modified_ns = root.changed_ns = root.accessed_ns = state.time.wall_ns;
    state.change.put(root);
    const bool made = state.apply(Need::Grows);
    CAIRN_ASSERT(made);  // an empty store has room
    state.store.commit();
}

// Resumes intents in the order in which they began.
void Shard::Parts::resume_intents() {
    std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>> intents;
    state.store.tables().intents().for_each(
        [&](std::uint64_t number, const IntentState& intent) { intents.emplace_back(number, intent.said); });
    std::ranges::sort(intents, {}, [](const auto& intent) { return static_cast<std::uint32_t>(intent.first); });
    std::vector<std::unique_ptr<ClosedGate>> gates;  // all are closed before the first intent goes on
    bool moves_directory = false;
    for (const auto& [number, said] : intents) {
        const std::optional<IntentText> intent = parse_intent(said);
        CAIRN_ASSERT(intent.has_value());  // of this version, as the superblock says
        const auto* const cut = std::get_if<CutFile>(&*intent);
        const auto* const move = std::get_if<MoveName>(&*intent);
        moves_directory = moves_directory || (move != nullptr && takes_turn(*move));
        gates.push_back(cut != nullptr
                            ? std::make_unique<ClosedGate>(state.gates, Gate{Gate::Kind::File, cut->file, {}})
                            : moves.close_gate(*intent));
    }
    for (std::size_t i = 0; i != intents.size(); ++i) {
        const auto& [number, said] = intents[i];
        const std::optional<IntentText> intent = parse_intent(said);
        if (const auto* const cut = std::get_if<CutFile>(&*intent)) {
            cuts.resume(Steps::step_of(number), *cut, std::move(gates[i]));
        } else if (number != kHeldTurn) {
            moves.resume(Steps::step_of(number), said, std::move(gates[i]));
        }
    }
    if (!moves_directory && !state.is_alone()) {
        moves.end_early_turn();
    }
}

// Runs what need not wait any more. That may let others go on.
void Shard::Parts::run_ready() {
    while (std::optional<Gates::Ready> ready = state.gates.take_ready()) {
        if (const auto* const kept_call = std::get_if<KeptCall>(&*ready)) {
            calls.take(kept_call->call());
        } else {
            std::get<std::coroutine_handle<>>(*ready).resume();
        }
    }
}

Shard::Shard(Store& store, ShardHost& host, const ClusterFacts& facts, ShardNumber number, std::uint64_t seed,
             const ShardTime& time, std::optional<std::uint32_t> own_user)
    : parts_(std::make_unique<Parts>(store, host, facts, number, seed, time, own_user)) {
    parts_->make_root();
    parts_->resume_intents();
}

Shard::~Shard() = default;

void Shard::begin_turn(const ShardTime& time) {
    parts_->state.time = time;
    parts_->peers.begin_turn(time.now);
    parts_->peers.wake();
    for (const KeptCall& late : parts_->state.gates.take_expired(time.now)) {
        parts_->replies.error(late.call().token, ETIMEDOUT);
    }
    parts_->run_ready();
}

void Shard::take(const Call& call) {
    CAIRN_ASSERT(call.slot < kMostSlotsOfClient);
    ++parts_->state.counters.calls;
    parts_->kept.see(call.client);
    parts_->calls.take(call);
    parts_->run_ready();
}

bool Shard::take_message(ShardNumber from, std::span<const std::uint8_t> message) {
    const bool is_one = parts_->service.take(from, message);
    parts_->run_ready();
    return is_one;
}

void Shard::lose(ShardNumber peer) {
    parts_->peers.lose(peer);
    parts_->run_ready();
}

void Shard::find(ShardNumber peer) {
    parts_->peers.find(peer);
}

void Shard::forget(std::uint64_t client) {
    parts_->background.forget(client);
}

bool Shard::end_turn() {
    Parts& parts = *parts_;
    parts.replies.commit();
    const std::vector<CallToken> syncs = parts.calls.take_syncs();
    const Background::Outcome outcome = parts.background.run(!syncs.empty());
    for (const CallToken token : syncs) {
        if (outcome.sync_error == 0) {
            parts.replies.ok(token, EmptyAnswer{});
        } else {
            parts.replies.error(token, outcome.sync_error);
        }
    }
    parts.run_ready();
    parts.replies.commit();
    return outcome.has_more;
}

Instant Shard::next_deadline() const noexcept {
    return std::min(
        {parts_->background.next_deadline(), parts_->peers.next_deadline(), parts_->state.gates.next_deadline()});
}

Status Shard::settle() {
    parts_->background.write_touched(~std::uint32_t{0});
    parts_->replies.commit();
    return parts_->state.store.sync();
}

const ShardCounters& Shard::counters() const noexcept {
    return parts_->state.counters;
}

ShardNumber Shard::number() const noexcept {
    return parts_->state.number;
}

}  // namespace cairn::fs
