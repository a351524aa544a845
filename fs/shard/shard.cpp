// A shard's turn: who handles a call, and when its answer leaves.
#include "fs/shard/shard.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "fs/shard/background.hpp"
#include "fs/shard/data_calls.hpp"
#include "fs/shard/file_calls.hpp"
#include "fs/shard/name_changes.hpp"
#include "fs/shard/turn_answers.hpp"

namespace cairn::fs {

namespace {

// Calls that are made once, however often they come.
template <class Request>
constexpr bool kIsMadeOnce = std::is_same_v<Request, CreateRequest> || std::is_same_v<Request, RemoveRequest> ||
                             std::is_same_v<Request, RenameRequest> || std::is_same_v<Request, LinkRequest> ||
                             std::is_same_v<Request, ReserveRequest>;

}  // namespace

struct Shard::Parts {
    Parts(Store& store, ShardHost& shard_host, const ClusterFacts& cluster, ShardNumber number, std::uint64_t seed,
          const ShardTime& time)
        : host(shard_host),
          facts(cluster),
          state{store, facts, Placement(facts.spread, facts.daemons, facts.placement_key), number,
                Grants(facts.cluster_key)},
          cutter(state),
          kept(state, time.now),
          lookups(state),
          changes(state, lookups, cutter, seed),
          files(state, cutter),
          data(state),
          background(state, cutter, kept) {
        state.time = time;
    }

    ShardHost& host;
    const ClusterFacts facts;
    ShardState state;
    Cutter cutter;
    KeptAnswers kept;
    NameLookups lookups;
    NameChanges changes;
    FileCalls files;
    DataCalls data;
    Background background;
    TurnAnswers answers{};
    std::vector<CallToken> syncs{};  // of a medium of pages

    void make_root();
    void commit();
    [[nodiscard]] AnswerRoom room() noexcept {
        return {answers.room(), static_cast<std::uint32_t>(facts.table.epoch())};
    }
    void stage(CallToken token, std::uint32_t bytes);
    void answer_synced(const std::vector<CallToken>& tokens, int error);

    [[nodiscard]] std::uint32_t handle(const Call& call, const WalkRequest& request) {
        return lookups.walk(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const CreateRequest& request) {
        return changes.create(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& /*call*/, const StatRequest& request) {
        return files.stat(request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const OpenRequest& request) {
        return files.open(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const CloseRequest& request) {
        return files.close(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const ReadRequest& request) {
        return data.read(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const WriteRequest& request) {
        return data.write(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const ExtendRequest& request) {
        return data.extend(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const ReserveRequest& request) {
        return data.reserve(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const SetAttributesRequest& request) {
        return files.set_attributes(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const RemoveRequest& request) {
        return changes.remove(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const ListRequest& request) {
        return lookups.list(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const RenameRequest& request) {
        return changes.rename(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const LinkRequest& request) {
        return changes.link(call, request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& /*call*/, const ReadLinkRequest& request) {
        return files.read_link(request, room());
    }
    [[nodiscard]] std::uint32_t handle(const Call& call, const StatFsRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const SyncRequest& request);

    [[nodiscard]] std::uint32_t again(const Call& call, const CreateRequest& request, std::int64_t result);
    [[nodiscard]] std::uint32_t again(const Call& call, const LinkRequest& request, std::int64_t result);
    [[nodiscard]] std::uint32_t again(const Call& call, const ReserveRequest& request, std::int64_t result);
    template <class Request>
    [[nodiscard]] std::uint32_t again(const Call& /*call*/, const Request& /*request*/, std::int64_t /*result*/) {
        return room().ok(EmptyAnswer{});
    }
    template <class Request>
    [[nodiscard]] std::uint32_t run(const Call& call, const Request& request);
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

// mutants: fs-shard-stage
void Shard::Parts::stage(CallToken token, std::uint32_t bytes) {
    answers.stage(token, bytes);
    if (!answers.has_room()) {
        commit();
    }
}

// What the answers say is durable before they leave.
void Shard::Parts::commit() {
    state.store.commit();
    answers.leave(host);
}

std::uint32_t Shard::Parts::handle(const Call& /*call*/, const StatFsRequest& /*request*/) {
    const StoreUse use = state.store.use();
    const Tables& tables = state.store.tables();
    StatFsAnswer answer;
    answer.bytes = std::uint64_t{use.blocks} * kBlockBytes;
    answer.free_bytes = std::uint64_t{use.free_blocks} * kBlockBytes;
    answer.files = tables.inodes().size();
    answer.chunks = tables.chunks().size();
    answer.log_bytes = std::uint64_t{use.log_units} * kUnitBytes;
    return room().ok(answer);
}

std::uint32_t Shard::Parts::handle(const Call& call, const SyncRequest& /*request*/) {
    if (!state.store.is_paged()) {
        return room().ok(EmptyAnswer{});
    }
    syncs.push_back(call.token);
    return kLater;
}

std::uint32_t Shard::Parts::again(const Call& call, const CreateRequest& request, std::int64_t /*result*/) {
    const DentryState* const child = state.store.tables().dentry(request.directory, request.name);
    return child == nullptr ? room().error(ENOENT) : lookups.found(call, *child, request.rights, true, room());
}

std::uint32_t Shard::Parts::again(const Call& /*call*/, const LinkRequest& request, std::int64_t /*result*/) {
    return files.stat({request.file}, room());
}

std::uint32_t Shard::Parts::again(const Call& /*call*/, const ReserveRequest& request, std::int64_t result) {
    const InodeState* const inode = state.inode(request.file);
    return inode == nullptr ? room().error(ESTALE)
                            : room().ok(DataAnswer{0, true, static_cast<std::uint64_t>(result), inode->inode.size,
                                                   inode->inode.generation});
}

// mutants: fs-shard-run
template <class Request>
std::uint32_t Shard::Parts::run(const Call& call, const Request& request) {
    if constexpr (kIsMadeOnce<Request>) {
        if (const std::optional<std::int64_t> result = kept.find(call)) {
            ++state.counters.repeated;
            return again(call, request, *result);
        }
    }
    return handle(call, request);
}

void Shard::Parts::answer_synced(const std::vector<CallToken>& tokens, int error) {
    for (const CallToken token : tokens) {
        stage(token, error == 0 ? room().ok(EmptyAnswer{}) : room().error(error));
    }
}

Shard::Shard(Store& store, ShardHost& host, const ClusterFacts& facts, ShardNumber number, std::uint64_t seed,
             const ShardTime& time)
    : parts_(std::make_unique<Parts>(store, host, facts, number, seed, time)) {
    parts_->make_root();
}

Shard::~Shard() = default;

void Shard::begin_turn(const ShardTime& time) noexcept {
    parts_->state.time = time;
}

// mutants: fs-shard-take
void Shard::take(const Call& call) {
    CAIRN_ASSERT(call.slot < kMostSlotsOfClient);
    ShardCounters& counters = parts_->state.counters;
    ++counters.calls;
    parts_->kept.see(call.client);
    const std::optional<ParsedRequest> parsed = parse_request(call.request);
    std::uint32_t bytes = 0;
    if (!parsed) {
        ++counters.malformed;
        bytes = parts_->room().error(kErrorMalformed);
    } else if (parsed->head.shard != parts_->state.number) {
        ++counters.other_shard;
        bytes = parts_->room().error(kErrorOtherShard);
    } else {
        parts_->state.sequence = parsed->head.sequence;
        bytes = std::visit([&](const auto& request) { return parts_->run(call, request); }, parsed->request);
        CAIRN_ASSERT(parts_->state.change.records().empty());
    }
    if (bytes != kLater) {
        parts_->stage(call.token, bytes);
    }
}

void Shard::forget(std::uint64_t client) {
    parts_->background.forget(client);
}

// mutants: fs-shard-end-turn
bool Shard::end_turn() {
    parts_->commit();
    const std::vector<CallToken> syncs = std::exchange(parts_->syncs, {});
    const Background::Outcome outcome = parts_->background.run(!syncs.empty());
    parts_->answer_synced(syncs, outcome.sync_error);
    for (const Cutter::Done& done : outcome.cut) {
        const InodeState* const inode = parts_->state.inode(done.file);
        parts_->stage(done.token, done.error != 0    ? parts_->room().error(done.error)
                                  : inode == nullptr ? parts_->room().error(ENOENT)
                                                     : parts_->room().ok(AttributesAnswer{parts_->state.seen(*inode)}));
    }
    parts_->commit();
    return outcome.has_more;
}

Instant Shard::next_deadline() const noexcept {
    return parts_->background.next_deadline();
}

Status Shard::settle() {
    parts_->background.write_touched(~std::uint32_t{0});
    parts_->commit();
    return parts_->state.store.sync();
}

const ShardCounters& Shard::counters() const noexcept {
    return parts_->state.counters;
}

ShardNumber Shard::number() const noexcept {
    return parts_->state.number;
}

}  // namespace cairn::fs
