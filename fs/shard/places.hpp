// This shard's part in other shards' changes of names: it places names and removes directories.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <utility>

#include "fs/shard/counts.hpp"
#include "fs/shard/lending.hpp"
#include "fs/shard/name_lookups.hpp"
#include "fs/shard/room.hpp"
#include "fs/shard/steps.hpp"

namespace cairn::fs {

class Places {
public:
    Places(ShardState& state, PeerCalls& peers, Steps& steps, NameLookups& lookups, Lending& lending,
           Counts& counts) noexcept
        : state_(state), peers_(peers), steps_(steps), lookups_(lookups), lending_(lending), counts_(counts) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    Co<PeerAnswer> place(ShardNumber from, PlaceRequest request);
    Co<PeerAnswer> remove_directory(ShardNumber from, RemoveDirectoryRequest request);

    [[nodiscard]] PeerAnswer parent(const ParentRequest& request) const;
    Co<PeerAnswer> set_parent(SetParentRequest request);

    // Asks a file's home to count one name less, until the home answers. The intent says so. Then answers the call.
    LoneTask drop_name(StepId step, FileId file, CallToken token);
    // Judges whether a caller may take the file's name out of a directory. Yields 0 or an errno.
    Co<int> judge_sticky(Owned directory, FileId file, Credentials who);

private:
    Co<PeerAnswer> place_named(ShardNumber from, const PlaceRequest& request, const Gate& name_gate);
    Co<FoundDirectory> find_directory(FileId directory, std::string_view name, Credentials who);
    Co<int> judge_replaced(const PlaceRequest& request, Owned directory, DentryState there, Credentials who);
    [[nodiscard]] int put_name(ShardNumber from, const PlaceRequest& request, std::optional<DentryState> there);

    ShardState& state_;
    PeerCalls& peers_;
    Steps& steps_;
    NameLookups& lookups_;
    Lending& lending_;
    Counts& counts_;
    absl::flat_hash_set<std::pair<ShardNumber, std::uint64_t>> placing_;  // steps of other shards that are under way
    Tasks tasks_;
};

}  // namespace cairn::fs
