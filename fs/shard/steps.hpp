// Numbers of changes at several shards, and the record of other shards' steps that were made here.
#pragma once

#include <optional>
#include <vector>

#include "fs/shard/intents.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

// Answers to other shards' steps are kept as clients' answers are. A shard has one of these client numbers; a lane is
// its slot.
constexpr std::uint64_t kPeerClients = 0xffff'ffff'ffff'0000U;
[[nodiscard]] constexpr bool is_peer(std::uint64_t client) noexcept {
    return client >= kPeerClients;
}

class Steps {
public:
    // Makes the part. `seed` is drawn anew at each start. Lanes of intents in the store are in use.
    Steps(ShardState& state, std::uint64_t seed);

    // Takes a lane for a change of this shard. Returns nothing if all are in use: the caller tries later.
    [[nodiscard]] std::optional<StepId> begin();
    // Returns the next change of the same lane. The caller has ended this one.
    [[nodiscard]] StepId next_of(StepId step) noexcept { return {step.lane, ++sequence_}; }
    // Returns a number that no life of this shard has used.
    [[nodiscard]] std::uint64_t new_number() noexcept { return ++number_; }
    void end(StepId step) { free_.push_back(step.lane); }
    // Add records to the present change: the intent is under way, or done.
    void put(StepId step, const IntentText& intent);
    void put_done(StepId step) { state_.change.put(Gone{Gone::IntentNumber{number_of(step)}}); }

    [[nodiscard]] static std::uint64_t number_of(StepId step) noexcept {
        return std::uint64_t{step.lane} << 32U | step.sequence;
    }
    [[nodiscard]] static StepId step_of(std::uint64_t number) noexcept {
        return {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)};
    }

    // True if this step of a shard was made here.
    [[nodiscard]] bool was_made(ShardNumber by, StepId step) const;
    // Adds to the present change that the step was made.
    void put_made(ShardNumber by, StepId step) {
        state_.change.put(AnswerRecord{{kPeerClients | by, step.lane}, step.sequence, 0});
    }

private:
    ShardState& state_;
    std::uint32_t sequence_;
    std::uint64_t number_;
    std::vector<std::uint32_t> free_;  // free lanes
};

}  // namespace cairn::fs
