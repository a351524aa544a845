// Shard: the part of a file system that one store has. See README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fs/placement/placement.hpp"
#include "fs/placement/slot_table.hpp"
#include "fs/shard/calls.hpp"
#include "fs/store/store.hpp"

namespace cairn::fs {

// What all shards of a file system agree on.
struct ClusterFacts {
    Spread spread = Spread::Even;
    std::uint32_t daemons = 1;  // that the file system was made with
    SipKey placement_key{};     // clients know it
    SipKey cluster_key{};       // nobody but daemons knows it: proofs are made with it
    SlotTable table{1};
};

// The root directory's id, in every file system.
constexpr FileId kRoot{1, 1};

struct ShardCounters {
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;       // answered with an errno
    std::uint64_t malformed = 0;    // no requests
    std::uint64_t repeated = 0;     // answered from what was kept of an earlier call
    std::uint64_t other_shard = 0;  // for a shard that this is not
    std::uint64_t damaged = 0;      // reads that a checksum refused
    std::uint64_t removed_files = 0;
    std::uint64_t syncs = 0;  // of a medium of pages
};

// One thread uses a shard. It has no I/O but its store's, no clock and no chance.
class Shard {
public:
    // `seed` is drawn anew at each start. Store and host outlive the shard. The root directory is made if the store has
    // none, and this shard is its home: everybody may write there, as in /tmp. `own_user` is whose daemon this is: the
    // store is his, so he may take a census, as a superuser may.
    Shard(Store& store, ShardHost& host, const ClusterFacts& facts, ShardNumber number, std::uint64_t seed,
          const ShardTime& time, std::optional<std::uint32_t> own_user = std::nullopt);
    Shard(const Shard&) = delete;
    Shard& operator=(const Shard&) = delete;
    ~Shard();

    // A turn: begin_turn(), any number of the calls below, end_turn().
    void begin_turn(const ShardTime& time);
    // Handles a call. Its answer comes exactly once: in end_turn() of this turn or of a later one, or, when there are
    // many, during take() of another call of this turn.
    void take(const Call& call);
    // Handles a message of another shard, whose daemon has proved that it is one. Returns false if it is none: the host
    // ends the connection.
    [[nodiscard]] bool take_message(ShardNumber from, std::span<const std::uint8_t> message);
    // No message comes from that shard any more, nor reaches it; or it is there (again). All shards are there at first.
    void lose(ShardNumber peer);
    void find(ShardNumber peer);
    // The client is gone for good: what it had open is closed. All its calls are answered (asserted by the host).
    void forget(std::uint64_t client);
    // Before a shard ends that was not killed: writes what is written once a second, and syncs a medium of pages.
    [[nodiscard]] Status settle();

    // Makes the turn's changes durable, answers, and does some of what is left to do in the background. Returns true if
    // there is more of that to do at once.
    bool end_turn();
    // Returns when there is something to do in a turn without calls; Instant::never() if there is nothing.
    [[nodiscard]] Instant next_deadline() const noexcept;

    [[nodiscard]] const ShardCounters& counters() const noexcept;
    [[nodiscard]] ShardNumber number() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace cairn::fs
