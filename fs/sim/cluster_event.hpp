// What happens in a simulated cluster, as its witness sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "fs/placement/slot_table.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

struct ClusterEvent {
    enum class What : std::uint8_t {
        Call,       // of a client to `to`; bytes: the request
        Answer,     // of `from`; bytes: the answer
        Message,    // between shards; bytes: see peers.hpp
        End,        // of the shard `from`, by itself
        PowerLoss,  // likewise, within a turn
        Restart,    // of the shard `from`
        Gone,       // the client is gone, and all shards hear of it
    };
    What what = What::Call;
    Instant at{};
    ShardNumber from = 0;
    ShardNumber to = 0;
    std::uint64_t client = 0;
    std::uint64_t call = 0;  // its number
    std::span<const std::uint8_t> bytes{};
};

// Shows events to a witness, if there is one. An event's bytes are there until the witness returns.
class ClusterWitness {
public:
    using See = std::function<void(const ClusterEvent&)>;

    void set(See see) { see_ = std::move(see); }
    void show(ClusterEvent event, Instant now) const {
        if (see_) {
            event.at = now;
            see_(event);
        }
    }

private:
    See see_{};
};

}  // namespace cairn::fs
