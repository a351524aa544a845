#include "fs/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fs/sim/cluster_faults.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kClients = 3;
constexpr int kStorms = 3;
constexpr int kStormSteps = 1500;  // of 10 us
constexpr int kCalmSteps = 1500;
constexpr int kMostSteps = 60'000;
constexpr int kRemovingSteps = 5000;  // a shard removes a file in each
constexpr std::size_t kExhaustingBytes = 4000;
constexpr std::uint64_t kNoIntent = 77;  // not in use

}  // namespace

FsWorld::FsWorld(std::uint64_t seed)
    : random_(seed), cluster_(1 + static_cast<std::uint32_t>(seed % 4), seed), is_to_be_full_(seed % 3 == 0) {
    deaths_.resize(cluster_.size());
    were_up_.resize(cluster_.size(), true);
    result_.shards = cluster_.size();
}

template <class Run>
void FsWorld::for_each_caller(Run&& run) const {
    for (const auto& client : clients_) {
        run(*client);
    }
    if (filler_) {
        run(*filler_);
    }
}

bool FsWorld::any_fault() const {
    bool any = false;
    for_each_caller([&](const auto& caller) { any = any || !caller.faults().empty(); });
    return any;
}

// After the step, a shard may have lost its power in its turn.
void FsWorld::step() {
    cluster_.step();
    for_each_caller([](auto& caller) { caller.step(); });
    for (ShardNumber shard = 0; shard != cluster_.size(); ++shard) {
        if (were_up_[shard] && !cluster_.is_up(shard)) {
            were_up_[shard] = false;
            ++deaths_[shard];
            ++result_.failures;
        }
    }
    forget_dead();
    result_.messages = cluster_.mail().messages();
}

void FsWorld::end(ShardNumber shard) {
    if (cluster_.is_up(shard)) {
        cluster_.end(shard);
        were_up_[shard] = false;
        ++deaths_[shard];
        ++result_.deaths;
    }
}

void FsWorld::restart(ShardNumber shard) {
    if (cluster_.is_up(shard)) {
        return;
    }
    cluster_.restart(shard);
    were_up_[shard] = true;
    for_each_caller([&](auto& caller) { caller.resend(shard); });
}

// Waits until a dead client's calls are answered, as its host does. Then all shards forget the client.
void FsWorld::forget_dead() {
    std::erase_if(zombies_, [&](const Zombie& zombie) {
        const SimClient::Left& left = zombie.left;
        const bool is_drained = left.token == 0 || cluster_.is_answered(left.token) || !cluster_.is_up(left.to) ||
                                deaths_[left.to] != zombie.deaths;
        if (is_drained) {
            cluster_.forget(left.client);
        }
        return is_drained;
    });
}

// Fills the stores before any faults begin.
void FsWorld::fill() {
    filler_ = std::make_unique<SimFiller>(cluster_, ++last_client_, random_.next());
    for (int i = 0; i != kMostSteps && !any_fault() && !filler_->is_full(); ++i) {
        step();
    }
    result_.was_full = filler_->is_full();
}

// Takes the log's room for changes that give space back, as many calls at once would do.
void FsWorld::exhaust(ShardNumber shard) {
    if (!cluster_.is_up(shard)) {
        return;
    }
    for (bool had_room = true; had_room;) {
        Change change;
        while (change.records().size() < kExhaustingBytes) {
            change.put(Gone{Gone::IntentNumber{kNoIntent}});
        }
        had_room = cluster_.store(shard).apply(change, Need::Shrinks);
    }
    cluster_.store(shard).commit();
}

void FsWorld::trouble() {
    const auto shard = static_cast<ShardNumber>(random_.below(cluster_.size()));
    if (filler_ && random_.below(500) == 0) {
        exhaust(shard);
    }
    switch (random_.below(600)) {
        case 0:
            end(shard);
            break;
        case 1:
        case 2:
            if (cluster_.is_up(shard)) {
                cluster_.fail_power(shard, static_cast<std::uint32_t>(random_.below(20)));
            }
            break;
        case 3: {
            const SimClient::Left left = clients_[random_.below(clients_.size())]->die(++last_client_);
            zombies_.push_back({left, deaths_[left.to]});
            ++result_.clients;
            break;
        }
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
            restart(shard);
            break;
        default:
            break;
    }
}

void FsWorld::storm() {
    for (int i = 0; i != kStormSteps && !any_fault(); ++i) {
        trouble();
        step();
    }
}

// Brings all shards back, and ends all that was begun. Files that were removed soon after a restart go 10 s after it.
// Only then do full stores have room.
void FsWorld::calm_down() {
    cluster_.keep_power();
    const Duration each = milliseconds(filler_ ? 300 : 100);
    for (int i = 0; i != 40; ++i) {
        for (ShardNumber shard = 0; shard != cluster_.size(); ++shard) {
            restart(shard);
        }
        cluster_.pass(each);
        step();
    }
    for_each_caller([](auto& caller) { caller.is_calm = true; });
    for (int i = 0; i != kCalmSteps && !any_fault(); ++i) {
        step();
    }
}

void FsWorld::await_end() {
    const auto have_all_ended = [this] {
        bool all = true;
        for_each_caller([&](const auto& caller) { all = all && caller.has_ended(); });
        return all;
    };
    for (int i = 0; i != kMostSteps && !any_fault() && !have_all_ended(); ++i) {
        step();
    }
    if (!any_fault() && !have_all_ended()) {
        result_.faults.emplace_back("a client waits for an answer for ever");
    }
}

void FsWorld::finish() {
    for_each_caller([](auto& caller) { caller.stops = true; });
    await_end();
    for (const auto& client : clients_) {
        cluster_.forget(client->client());
    }
    // Gives time for two rounds of the sweeper. Files that were removed soon after a restart are gone by then, too.
    for (int i = 0; i != 15; ++i) {
        cluster_.pass(seconds(10));
        forget_dead();
    }
    for (int i = 0; i != kRemovingSteps; ++i) {
        step();
    }
    if (filler_ && filler_->has_ended()) {
        filler_->come_back();
        await_end();
        cluster_.forget(filler_->client());
        cluster_.pass(seconds(10));
    }
}

// Checks a shard for leftovers, after all files were closed.
void FsWorld::look_for_leftovers(ShardNumber shard) {
    const Store& store = cluster_.store(shard);
    if (store.use().is_to_be_cleaned) {
        result_.faults.push_back(fmt::format("shard {}: what was removed is still in the log", shard));
    }
    store.tables().inodes().for_each([&](const FileId& id, const InodeState& state) {
        if (state.inode.links == 0) {
            result_.faults.push_back(fmt::format("shard {}: {:x}:{:x} has no name", shard, id.place, id.random));
        }
    });
}

FsWorldResult FsWorld::run() {
    for (std::uint32_t i = 0; i != kClients; ++i) {
        clients_.push_back(std::make_unique<SimClient>(cluster_, ++last_client_, random_.next()));
    }
    if (is_to_be_full_) {
        fill();
    }
    for (int i = 0; i != kStorms && !any_fault(); ++i) {
        for_each_caller([](auto& caller) { caller.is_calm = false; });
        storm();
        calm_down();
    }
    finish();
    for (ShardNumber shard = 0; shard != cluster_.size() && !any_fault(); ++shard) {
        look_for_leftovers(shard);
    }
    const std::vector<std::string> faults = faults_of(cluster_, Strays::BeyondTheEnd);
    result_.faults.insert(result_.faults.end(), faults.begin(), faults.end());
    return result();
}

FsWorldResult FsWorld::result() const {
    FsWorldResult result = result_;
    for (const auto& client : clients_) {
        result.faults.insert(result.faults.begin(), client->faults().begin(), client->faults().end());
        result.counts.operations += client->counts().operations;
        result.counts.unknown += client->counts().unknown;
        result.resent += client->resent();
        result.counts.looked += client->counts().looked;
        result.counts.refusals.add(client->counts().refusals);
    }
    if (filler_) {
        result.faults.insert(result.faults.begin(), filler_->faults().begin(), filler_->faults().end());
        result.counts.refusals.add(filler_->refusals());
        result.resent += filler_->resent();
    }
    return result;
}

std::string FsWorld::text() const {
    const FsWorldResult so_far = result();
    return fmt::format(
        "{} shards{}, {} deaths, {} losses of power; {} clients died; {} operations, {} refused for want of room, {} "
        "with an unknown end, {} requests made again; {} files looked at",
        so_far.shards, so_far.was_full ? ", whose stores were full" : "", so_far.deaths, so_far.failures,
        so_far.clients, so_far.counts.operations, so_far.counts.refusals.all(), so_far.counts.unknown, so_far.resent,
        so_far.counts.looked);
}

}  // namespace cairn::fs
