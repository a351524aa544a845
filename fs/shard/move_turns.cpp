#include "fs/shard/move_turns.hpp"

namespace cairn::fs {

namespace {

constexpr Duration kTurnLook = microseconds(100);
constexpr std::size_t kMostUnwanted = 4096;

}  // namespace

MoveTurns::MoveTurns(ShardState& state) : state_(state) {
    if (const IntentState* const held = state_.store.tables().intents().find(kHeldTurn); held != nullptr) {
        const std::optional<IntentText> intent = parse_intent(held->said);
        CAIRN_ASSERT(intent && std::holds_alternative<HeldTurn>(*intent));
        holder_ = std::get<HeldTurn>(*intent);
    }
}

bool MoveTurns::hold(const HeldTurn& turn) {
    const std::vector<std::uint8_t> said = bytes_of(turn);
    state_.change.put(Intent{kHeldTurn, said});
    if (!state_.apply(Need::Shrinks)) {
        return false;
    }
    holder_ = turn;
    return true;
}

bool MoveTurns::is_unwanted(const HeldTurn& turn, std::uint32_t life) const {
    return unwanted_.contains({turn.shard, turn.turn}) || life != lives_.at(turn.shard);
}

Co<PeerAnswer> MoveTurns::take(HeldTurn turn) {
    const Instant due = state_.time.now + kPatience;
    const std::uint32_t life = lives_[turn.shard];
    while ((holder_ || state_.waits_for_room()) && !is_unwanted(turn, life)) {
        if (state_.time.now >= due) {
            co_return PeerAnswer{kErrorUnreachable};
        }
        co_await state_.peers.until(state_.time.now + kTurnLook);
    }
    const bool is_of_no_use = is_unwanted(turn, life);
    unwanted_.erase({turn.shard, turn.turn});
    if (is_of_no_use || !hold(turn)) {
        co_return PeerAnswer{kErrorUnreachable};
    }
    co_return PeerAnswer{};
}

// A turn in the log is held, also by the next life of this shard.
Co<PeerAnswer> MoveTurns::end(ShardNumber from, MoveTurnRequest request) {
    (void)co_await until_room(state_);
    const bool is_holder = holder_ && holder_->shard == from;
    if (is_holder && (request.what == MoveTurnRequest::What::EndEarly || holder_->turn == request.turn)) {
        state_.change.put(Gone{Gone::IntentNumber{kHeldTurn}});
        if (!state_.apply(Need::Shrinks)) {
            co_return PeerAnswer{kErrorUnreachable};  // the holder asks again
        }
        holder_.reset();
    } else if (request.what == MoveTurnRequest::What::End) {
        if (unwanted_.size() >= kMostUnwanted) {
            unwanted_.clear();
        }
        unwanted_.insert({from, request.turn});
    }
    co_return PeerAnswer{};
}

Co<PeerAnswer> MoveTurns::serve(ShardNumber from, MoveTurnRequest request) {
    switch (request.what) {
        case MoveTurnRequest::What::Take:
            co_return co_await take({from, request.turn});
        case MoveTurnRequest::What::Resume:
            ++lives_[from];
            (void)co_await until_room(state_);
            if (!holder_ || holder_->shard == from) {
                co_return PeerAnswer{hold({from, request.turn}) ? 0 : kErrorUnreachable};
            }
            co_return co_await take({from, request.turn});
        case MoveTurnRequest::What::End:
        case MoveTurnRequest::What::EndEarly:
            lives_[from] += request.what == MoveTurnRequest::What::EndEarly ? 1 : 0;
            co_return co_await end(from, request);
    }
    co_return PeerAnswer{};
}

}  // namespace cairn::fs
