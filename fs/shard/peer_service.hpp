// A shard's work for other shards.
#pragma once

#include "fs/shard/cuts.hpp"
#include "fs/shard/move_turns.hpp"
#include "fs/shard/places.hpp"

namespace cairn::fs {

class PeerService final : public PeerHandler {
public:
    PeerService(ShardState& state, Lending& lending, Counts& counts, Cuts& cuts, Places& places,
                MoveTurns& turns) noexcept
        : state_(state), lending_(lending), counts_(counts), cuts_(cuts), places_(places), turns_(turns) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Handles a message of another shard. Returns false if the bytes are no message.
    [[nodiscard]] bool take(ShardNumber from, std::span<const std::uint8_t> message);
    Co<PeerAnswer> serve(ShardNumber from, PeerRequest request) override;

private:
    LoneTask answer(ShardNumber from, std::vector<std::uint8_t> message);
    [[nodiscard]] PeerAnswer touch(const TouchRequest& request);
    Co<PeerAnswer> stat(PeerStatRequest request);

    ShardState& state_;
    Lending& lending_;
    Counts& counts_;
    Cuts& cuts_;
    Places& places_;
    MoveTurns& turns_;
    Tasks tasks_;
};

}  // namespace cairn::fs
