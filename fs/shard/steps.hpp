// Numbers of changes at several shards, and which steps of other shards' changes were made here.
#pragma once

#include <optional>
#include <vector>

#include "fs/shard/intents.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// The answers to other shards' steps are kept as clients' are, by lane.
constexpr std::uint64_t kPeerClients = 0xffff'ffff'ffff'0000U;
[[nodiscard]] constexpr bool is_peer(std::uint64_t client) noexcept {
    return client >= kPeerClients;
}

class Steps {
public:
    // `seed` is drawn anew at each start. Lanes of intents that the store has are taken.
    Steps(ShardState& state, std::uint64_t seed);

    // Takes a lane for a change of this shard. Returns nothing if all are taken: the caller tries later.
    [[nodiscard]] std::optional<StepId> begin();
    // The next change of the same lane: the caller has ended this one.
    [[nodiscard]] StepId next_of(StepId step) noexcept { return {step.lane, ++sequence_}; }
    // A number that no life of this shard has had.
    [[nodiscard]] std::uint64_t new_number() noexcept { return ++number_; }
    void end(StepId step) { free_.push_back(step.lane); }
    // Add records to the change at hand: the intent is under way, or done.
    void put(StepId step, const IntentText& intent);
    void put_done(StepId step) { state_.change.put(Gone{Gone::IntentNumber{number_of(step)}}); }

    [[nodiscard]] static std::uint64_t number_of(StepId step) noexcept {
        return std::uint64_t{step.lane} << 32U | step.sequence;
    }
    [[nodiscard]] static StepId step_of(std::uint64_t number) noexcept {
        return {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)};
    }

    // Whether a shard's step was made here.
    [[nodiscard]] bool was_made(ShardNumber by, StepId step) const;
    // Adds to the change at hand that it was.
    void put_made(ShardNumber by, StepId step) {
        state_.change.put(AnswerRecord{{kPeerClients | by, step.lane}, step.sequence, 0});
    }

private:
    ShardState& state_;
    std::uint32_t sequence_;
    std::uint64_t number_;
    std::vector<std::uint32_t> free_;  // lanes
};

}  // namespace cairn::fs
