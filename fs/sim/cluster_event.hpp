// The events of a simulated cluster, as its witness sees them.
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
        Call,       // by a client to `to`; bytes: the request
        Answer,     // by `from`; bytes: the answer
        Message,    // between shards; bytes: see peers.hpp
        End,        // the shard `from` ends by itself
        PowerLoss,  // the shard `from` loses power within a turn
        Restart,    // the shard `from` is back
        Gone,       // the client is gone, and all shards are notified
    };
    What what = What::Call;
    Instant at{};
    ShardNumber from = 0;
    ShardNumber to = 0;
    std::uint64_t client = 0;
    std::uint64_t call = 0;  // the call's number
    std::span<const std::uint8_t> bytes{};
};

// Shows events to a witness, if there is one. An event's bytes are valid until the witness returns.
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
