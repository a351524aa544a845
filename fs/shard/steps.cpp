#include "fs/shard/steps.hpp"

namespace cairn::fs {

Steps::Steps(ShardState& state, std::uint64_t seed)
    : state_(state), sequence_(static_cast<std::uint32_t>(seed)), number_(seed) {
    std::vector<bool> taken(kMostSlotsOfClient);
    state_.store.tables().intents().for_each([&](std::uint64_t number, const IntentState& /*unused*/) {
        if (number != kHeldTurn) {
            taken[step_of(number).lane % taken.size()] = true;
        }
    });
    for (std::uint32_t lane = kMostSlotsOfClient; lane-- != 0;) {
        if (!taken[lane]) {
            free_.push_back(lane);
        }
    }
}

std::optional<StepId> Steps::begin() {
    if (free_.empty()) {
        return std::nullopt;
    }
    const StepId step{free_.back(), ++sequence_};
    free_.pop_back();
    return step;
}

void Steps::put(StepId step, const IntentText& intent) {
    const std::vector<std::uint8_t> said = bytes_of(intent);
    state_.change.put(Intent{number_of(step), said});
}

bool Steps::was_made(ShardNumber by, StepId step) const {
    const AnswerState* const answer = state_.store.tables().answer({kPeerClients | by, step.lane});
    return answer != nullptr && answer->sequence == step.sequence;
}

}  // namespace cairn::fs
