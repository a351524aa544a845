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

}  // namespace

FsWorld::FsWorld(std::uint64_t seed) : random_(seed), cluster_(1 + static_cast<std::uint32_t>(seed % 4), seed) {
    deaths_.resize(cluster_.size());
    were_up_.resize(cluster_.size(), true);
    result_.shards = cluster_.size();
}

bool FsWorld::any_fault() const {
    return std::ranges::any_of(clients_, [](const auto& client) { return !client->faults().empty(); });
}

// A shard may have lost its power in a turn.
void FsWorld::step() {
    cluster_.step();
    for (const auto& client : clients_) {
        client->step();
    }
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
    for (const auto& client : clients_) {
        client->resend(shard);
    }
}

// A client's host drains its calls before it says that the client is gone.
void FsWorld::forget_dead() {
    std::erase_if(zombies_, [&](const Zombie& zombie) {
        const SimClient::Left& left = zombie.left;
        const bool is_drained =
            left.token == 0 || cluster_.is_answered(left.token) || deaths_[left.to] != zombie.deaths;
        if (is_drained) {
            cluster_.forget(left.client);
        }
        return is_drained;
    });
}

void FsWorld::trouble() {
    const auto shard = static_cast<ShardNumber>(random_.below(cluster_.size()));
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

// Everybody is there, and what was begun ends.
void FsWorld::calm_down() {
    cluster_.keep_power();
    for (int i = 0; i != 40; ++i) {
        for (ShardNumber shard = 0; shard != cluster_.size(); ++shard) {
            restart(shard);
        }
        cluster_.pass(milliseconds(100));
        step();
    }
    for (const auto& client : clients_) {
        client->is_calm = true;
    }
    for (int i = 0; i != kCalmSteps && !any_fault(); ++i) {
        step();
    }
}

void FsWorld::finish() {
    for (const auto& client : clients_) {
        client->stops = true;
    }
    const auto has_ended = [](const auto& client) { return client->has_ended(); };
    for (int i = 0; i != kMostSteps && !any_fault() && !std::ranges::all_of(clients_, has_ended); ++i) {
        step();
    }
    if (!any_fault() && !std::ranges::all_of(clients_, has_ended)) {
        result_.faults.emplace_back("a client waits for an answer for ever");
    }
    for (const auto& client : clients_) {
        cluster_.forget(client->client());
    }
    for (int i = 0; i != 15; ++i) {
        cluster_.pass(seconds(10));  // a look for what is nobody's, and another one
        forget_dead();
    }
}

FsWorldResult FsWorld::run() {
    for (std::uint32_t i = 0; i != kClients; ++i) {
        clients_.push_back(std::make_unique<SimClient>(cluster_, ++last_client_, random_.next()));
    }
    for (int i = 0; i != kStorms && !any_fault(); ++i) {
        for (const auto& client : clients_) {
            client->is_calm = false;
        }
        storm();
        calm_down();
    }
    finish();
    const std::vector<std::string> faults = faults_of(cluster_, Strays::BeyondTheEnd);
    result_.faults.insert(result_.faults.end(), faults.begin(), faults.end());
    return result();
}

FsWorldResult FsWorld::result() const {
    FsWorldResult result = result_;
    for (const auto& client : clients_) {
        result.faults.insert(result.faults.begin(), client->faults().begin(), client->faults().end());
        result.counts.operations += client->counts().operations;
        result.counts.refused += client->counts().refused;
        result.counts.unknown += client->counts().unknown;
        result.resent += client->resent();
        result.counts.looked += client->counts().looked;
    }
    return result;
}

std::string FsWorld::text() const {
    const FsWorldResult so_far = result();
    return fmt::format(
        "{} shards, {} deaths, {} losses of power; {} clients died; {} operations, {} refused for want of room, {} "
        "with an unknown end, {} requests made again; {} files looked at",
        so_far.shards, so_far.deaths, so_far.failures, so_far.clients, so_far.counts.operations, so_far.counts.refused,
        so_far.counts.unknown, so_far.resent, so_far.counts.looked);
}

}  // namespace cairn::fs
