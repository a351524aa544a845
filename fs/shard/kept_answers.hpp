// The last answers to clients, so that a retry after a lost answer finds its answer. The store keeps the answers; this
// class knows the clients.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <deque>
#include <vector>

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class KeptAnswers {
public:
    // Time for clients to come back after a restart. A client that does not counts as gone.
    static constexpr Duration kGrace = seconds(10);

    KeptAnswers(ShardState& state, Instant now);

    // Returns the result of the present call, if it was made before.
    [[nodiscard]] std::optional<std::int64_t> find(const Call& call) const;
    // Notes that the client makes calls.
    void see(std::uint64_t client) {
        if (!absent_.empty()) {
            absent_.erase(client);
        }
    }
    // Forgets the answers of a client that is gone: in this turn or, in a full store, in a later one.
    void forget(std::uint64_t client) { forgotten_.push_back(client); }
    // Removes answers of forgotten clients, as far as there is room for the records.
    void drop_forgotten();
    // Returns, once, the clients that had answers before a restart and did not come back in time.
    [[nodiscard]] std::vector<std::uint64_t> take_absent(Instant now);
    [[nodiscard]] Instant grace_ends() const noexcept { return grace_ends_; }

private:
    ShardState& state_;
    Instant grace_ends_;  // never() after it has ended
    absl::flat_hash_set<std::uint64_t> absent_;
    std::deque<std::uint64_t> forgotten_;  // clients that may have answers here
};

}  // namespace cairn::fs
