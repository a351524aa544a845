#include "fs/shard/kept_answers.hpp"

#include <algorithm>

#include "fs/shard/steps.hpp"

namespace cairn::fs {

KeptAnswers::KeptAnswers(ShardState& state, Instant now) : state_(state), grace_ends_(now + kGrace) {
    state_.store.tables().answers().for_each([&](const AnswerId& id, const AnswerState& /*unused*/) {
        if (!is_peer(id.client)) {
            absent_.insert(id.client);
        }
    });
}

std::optional<std::int64_t> KeptAnswers::find(const Call& call) const {
    const AnswerState* const answer = state_.store.tables().answer({call.client, call.slot});
    return answer != nullptr && answer->sequence == state_.sequence ? std::optional(answer->result) : std::nullopt;
}

void KeptAnswers::drop_forgotten() {
    while (!forgotten_.empty()) {
        for (std::uint32_t slot = 0; slot != kMostSlotsOfClient; ++slot) {
            const AnswerId id{forgotten_.front(), slot};
            if (state_.store.tables().answer(id) != nullptr &&
                state_.change.records().size() < Log::kMostRecordBytes / 2) {
                state_.change.put(Gone{id});
            }
        }
        const bool is_last = state_.change.records().size() < Log::kMostRecordBytes / 2;
        if (!state_.change.records().empty() && !state_.apply(Need::Shrinks)) {
            return;  // the cleaner makes room
        }
        if (is_last) {
            forgotten_.pop_front();
        }
    }
}

std::vector<std::uint64_t> KeptAnswers::take_absent(Instant now) {
    if (now < grace_ends_) {
        return {};
    }
    grace_ends_ = Instant::never();
    std::vector<std::uint64_t> absent(absent_.begin(), absent_.end());
    absent_.clear();
    std::ranges::sort(absent);
    return absent;
}

}  // namespace cairn::fs
