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

// mutants: fs-kept-answers
std::optional<std::int64_t> KeptAnswers::find(const Call& call) const {
    const AnswerState* const answer = state_.store.tables().answer({call.client, call.slot});
    return answer != nullptr && answer->sequence == state_.sequence ? std::optional(answer->result) : std::nullopt;
}

void KeptAnswers::forget(std::uint64_t client) {
    for (std::uint32_t slot = 0; slot != kMostSlotsOfClient; ++slot) {
        const AnswerId id{client, slot};
        if (state_.store.tables().answer(id) == nullptr) {
            continue;
        }
        state_.change.put(Gone{id});
        if (state_.change.records().size() > Log::kMostRecordBytes / 2) {
            (void)state_.apply(Need::Shrinks);  // without room, they stay until the next start
        }
    }
    if (!state_.change.records().empty()) {
        (void)state_.apply(Need::Shrinks);
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
