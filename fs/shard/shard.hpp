// Shard: the part of a file system in one store. See README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fs/placement/placement.hpp"
#include "fs/placement/slot_table.hpp"
#include "fs/shard/calls.hpp"
#include "fs/store/store.hpp"

namespace cairn::fs {

// Facts that all shards of a file system agree on.
struct ClusterFacts {
    Spread spread = Spread::Even;
    std::uint32_t daemons = 1;  // number of daemons when the file system was made
    SipKey placement_key{};     // clients know it
    SipKey cluster_key{};       // only daemons know it; they make proofs with it
    SlotTable table{1};
};

// The id of the root directory in every file system.
constexpr FileId kRoot{1, 1};

struct ShardCounters {
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;       // answered with an errno
    std::uint64_t malformed = 0;    // were no requests
    std::uint64_t repeated = 0;     // answered with the answer of an earlier call
    std::uint64_t other_shard = 0;  // for another shard
    std::uint64_t damaged = 0;      // reads that a checksum refused
    std::uint64_t removed_files = 0;
    std::uint64_t syncs = 0;  // syncs of a medium of pages
};

// One thread uses a shard. Its only I/O is its store's. It reads no clock and draws no random numbers.
class Shard {
public:
    // Makes a shard. `seed` is drawn anew at each start. Store and host outlive the shard. If this shard is the root's
    // home and the store has no root directory, makes one; all users may write there, as in /tmp. `own_user` runs the
    // daemon and owns the store. That user may take a census, as a superuser may.
    Shard(Store& store, ShardHost& host, const ClusterFacts& facts, ShardNumber number, std::uint64_t seed,
          const ShardTime& time, std::optional<std::uint32_t> own_user = std::nullopt);
    Shard(const Shard&) = delete;
    Shard& operator=(const Shard&) = delete;
    ~Shard();

    // Begins a turn: begin_turn(), any number of the calls below, end_turn().
    void begin_turn(const ShardTime& time);
    // Handles a call. Its answer comes exactly once: in end_turn() of this turn or of a later one. If there are many
    // answers, it may come during take() of another call of this turn.
    void take(const Call& call);
    // Handles a message of another shard; its daemon has proved itself. Returns false if the bytes are no message: the
    // host then ends the connection.
    [[nodiscard]] bool take_message(ShardNumber from, std::span<const std::uint8_t> message);
    // Notes that a shard is lost, so messages neither reach it nor come from it, or that it is back. At first all
    // shards are there.
    void lose(ShardNumber peer);
    void find(ShardNumber peer);
    // Closes what the client had open. The client is gone for good, and all its calls are answered (asserted by the
    // host).
    void forget(std::uint64_t client);
    // Writes what is written once a second, and syncs a medium of pages. Called before a shard ends in an orderly way.
    [[nodiscard]] Status settle();

    // Makes the turn's changes durable, answers, and does some of the background work. Returns true if there is more of
    // that work to do at once.
    bool end_turn();
    // Returns when a turn without calls has something to do, or Instant::never().
    [[nodiscard]] Instant next_deadline() const noexcept;

    [[nodiscard]] const ShardCounters& counters() const noexcept;
    [[nodiscard]] ShardNumber number() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace cairn::fs
