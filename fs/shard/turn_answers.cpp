#include "fs/shard/turn_answers.hpp"

#include "fs/channel/segment.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

TurnAnswers::TurnAnswers() : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(kBytes)) {}  // NOLINT

void TurnAnswers::stage(CallToken token, std::uint32_t bytes) {
    CAIRN_ASSERT(bytes != 0 && bytes <= kAnswerBytes && has_room());
    staged_.push_back({token, static_cast<std::uint32_t>(used_), bytes});
    used_ += bytes;
}

void TurnAnswers::leave(ShardHost& host) noexcept {
    for (const Staged& staged : staged_) {
        host.answer(staged.token, {bytes_.get() + staged.at, staged.bytes});
    }
    staged_.clear();
    used_ = 0;
}

}  // namespace cairn::fs
