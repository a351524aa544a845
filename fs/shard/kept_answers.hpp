// What clients were answered last: a retry after a lost answer finds it. The store has it; here is who is known.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <deque>
#include <vector>

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class KeptAnswers {
public:
    // Time for clients to come back after a restart. Who does not is gone.
    static constexpr Duration kGrace = seconds(10);

    KeptAnswers(ShardState& state, Instant now);

    // The result of the call at hand, if it was made before.
    [[nodiscard]] std::optional<std::int64_t> find(const Call& call) const;
    // The client calls.
    void see(std::uint64_t client) {
        if (!absent_.empty()) {
            absent_.erase(client);
        }
    }
    // The client is gone: so are its answers, in this turn or, in a full store, in a later one.
    void forget(std::uint64_t client) { forgotten_.push_back(client); }
    // Forgets what there is room for.
    void drop_forgotten();
    // Returns the clients that had answers before a restart and did not come back in time, once.
    [[nodiscard]] std::vector<std::uint64_t> take_absent(Instant now);
    [[nodiscard]] Instant grace_ends() const noexcept { return grace_ends_; }

private:
    ShardState& state_;
    Instant grace_ends_;  // never: it has ended
    absl::flat_hash_set<std::uint64_t> absent_;
    std::deque<std::uint64_t> forgotten_;  // clients that may have answers here
};

}  // namespace cairn::fs
