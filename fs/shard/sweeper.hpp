// Looks for chunks without a file. Their client died before the file's home learnt of them, or they came after the file
// had been removed.
#pragma once

#include <vector>

#include "fs/shard/peer_calls.hpp"

namespace cairn::fs {

class Sweeper {
public:
    // Rounds begin at least this long after each other. The first one begins this long after the start or a client's
    // end.
    static constexpr Duration kEvery = seconds(60);

    explicit Sweeper(ShardState& state) noexcept : state_(state), due_(state.time.now + kEvery) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Notes that there may be such chunks.
    void suspect() noexcept {
        if (due_ == Instant::never()) {
            due_ = state_.time.now + kEvery;
        }
    }
    // Begins a round if it is due.
    void run();
    [[nodiscard]] Instant next_deadline() const noexcept { return state_.is_alone() ? Instant::never() : due_; }

private:
    // A chunk before the question to its file's home.
    struct Seen {
        ChunkId id{};
        LogSpot spot{};
    };

    LoneTask sweep();
    [[nodiscard]] std::vector<Seen> chunks_of_others(std::size_t part) const;
    void judge(const std::vector<Seen>& chunks, const PeerAnswer& home);
    void apply();
    void remove(const std::vector<Seen>& chunks);

    ShardState& state_;
    Instant due_;
    Tasks tasks_;
};

}  // namespace cairn::fs
