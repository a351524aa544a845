// Store: the data of one shard on its medium. See README.md.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/store/chunk_data.hpp"
#include "fs/store/cleaner.hpp"
#include "fs/store/holds.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// The parameters of a new store. The caller draws its id and its key.
struct StoreShape {
    static constexpr std::uint32_t kLeastChunkBytes = 64U << 10U;
    static constexpr std::uint32_t kMostChunkBytes = 4U << 20U;

    [[nodiscard]] static bool is_valid(std::uint32_t chunk_bytes) noexcept {
        return std::has_single_bit(chunk_bytes) && chunk_bytes >= kLeastChunkBytes && chunk_bytes <= kMostChunkBytes;
    }

    std::uint32_t chunk_bytes = 1U << 20U;  // a power of two
    std::uint64_t store_id = 0;
    std::uint64_t name_key = 0;
};

// The records of one operation. The store applies all of them or none.
class Change {
public:
    void put(const Record& record) { put_record(records_, record); }
    // Adds blocks that a record of this change names. No other record names them.
    void bring(const BlockRun& run) { brought_.push_back(run); }
    [[nodiscard]] std::span<const std::uint8_t> records() const noexcept { return records_; }
    [[nodiscard]] std::span<const BlockRun> brought() const noexcept { return brought_; }
    void clear() noexcept {
        records_.clear();
        brought_.clear();
    }

private:
    std::vector<std::uint8_t> records_;
    std::vector<BlockRun> brought_;
};

enum class Need : std::uint8_t {
    Grows,    // the change is refused when the store is full
    Shrinks,  // gives space back, so it has room in a full store, too
    Marks,    // the store's own record of a few bytes; has room when the others have none, so that cleaning can make
              // some
};

struct StoreUse {
    std::uint32_t blocks = 0;  // for data and log together
    std::uint32_t free_blocks = 0;
    std::uint32_t log_units = 0;
    std::uint64_t live_bytes = 0;     // bytes of live records in the log
    bool is_to_be_cleaned = false;    // clean() makes room
    std::uint32_t cleaning_pace = 0;  // bytes of the log to clean for each byte that is appended
    bool cleaning_is_stuck = false;
};

struct Scrubbed {
    std::uint32_t blocks = 0;  // number of compared blocks
    std::uint32_t damaged = 0;
    std::uint32_t next = 0;  // place of the first block that was not compared; 0: there is none
};

// One thread uses a store. The medium outlives it.
class Store {
public:
    // Makes an empty store. The medium's old content is lost. Errors: the region or the chunks' size is out of range.
    static Result<std::unique_ptr<Store>> format(Medium& medium, const StoreShape& shape);
    // Reads the log. Errors: there is no store; the store is of another version or another size, or damaged.
    static Result<std::unique_ptr<Store>> open(Medium& medium);

    [[nodiscard]] const Tables& tables() const noexcept { return tables_; }
    [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return superblock_.chunk_bytes; }
    [[nodiscard]] std::uint64_t store_id() const noexcept { return superblock_.store_id; }
    [[nodiscard]] StoreUse use() const noexcept;
    // True on a medium of pages: see sync().
    [[nodiscard]] bool is_paged() const noexcept { return medium_.granularity() == Granularity::Page; }

    // Makes an operation's change. All readers see it from now on, and it is durable after the next commit(). Returns
    // false and changes nothing if it has no room; then the blocks that it brought are free again. A change is at most
    // Log::kMostRecordBytes long (asserted). It is empty afterwards.
    [[nodiscard]] bool apply(Change& change, Need need);
    // True if a change of `bytes` has room.
    [[nodiscard]] bool has_room(std::size_t bytes, Need need) noexcept;
    // Drops a change: the blocks that it brought are free again, and it is empty.
    void discard(Change& change);
    // Makes all changes so far durable before it returns. On a medium of pages they are durable after the next sync().
    void commit();
    // On a medium of pages, makes all changes so far durable, and frees the space that they gave back. Elsewhere as
    // commit(). Errors: see Medium::sync().
    Status sync();
    // Cleans the log a little if cleaning is due, and commits. Reads about `bytes` of the log. Returns true if there is
    // more to do at once. A medium of pages needs a sync() for each unit.
    bool clean(std::uint32_t bytes);

    // Takes blocks for a part of a chunk, which lies within the chunk (asserted). Returns nothing if there are not
    // enough free blocks.
    [[nodiscard]] std::optional<PendingWrite> begin_write(const ChunkId& chunk, std::uint64_t generation,
                                                          std::uint32_t offset, std::uint32_t bytes);
    // Returns the object that writes the bytes of a pending write.
    [[nodiscard]] ChunkData& data() noexcept { return data_; }
    // Ends a write whose bytes are in the blocks. Adds the chunk's record to the change, which must be applied next.
    // The rest of the chunk is kept, unless it has another generation. The blocks belong to the change.
    void finish_write(PendingWrite& write, Change& change);
    void give_up(PendingWrite& write);
    // Adds a record that keeps only the first `bytes` of a chunk. Returns false if there is no block for the last part
    // of them.
    [[nodiscard]] bool cut(const ChunkId& chunk, std::uint64_t generation, std::uint32_t bytes, Change& change);

    // Copies a part of a chunk; holes are zeros. Returns false if a block's checksum refuses it.
    [[nodiscard]] bool read(const ChunkId& chunk, std::uint32_t offset, std::span<std::uint8_t> to) const;
    // Compares blocks of a chunk with their checksums, from block `from` on, at most `most` of them.
    [[nodiscard]] Scrubbed scrub(const ChunkId& chunk, std::uint32_t from = 0, std::uint32_t most = ~0U) const;
    // Keeps the blocks of a part of a chunk as they are until release().
    [[nodiscard]] Hold hold(const ChunkId& chunk, std::uint32_t offset, std::uint32_t bytes);
    void release(Hold& hold);

    // Asserts that each block has one owner, and that the map agrees. This always holds between calls. For tests and
    // fsck. `pending`: number of blocks of writes under way.
    void check(std::uint32_t pending = 0) const;

private:
    Store(Medium& medium, const Superblock& superblock, const Layout& layout);
    Status recover();
    [[nodiscard]] Status read_log(std::deque<LogUnit>& units, EntryReader& reader);
    [[nodiscard]] bool has_its_data(std::span<const std::uint8_t> entry) const;
    [[nodiscard]] Status take_chunks();
    [[nodiscard]] Status mark_life();
    void free_blocks();

    Medium& medium_;
    Superblock superblock_;
    const Layout layout_;
    BlockMap map_;
    Holds holds_;
    Log log_;
    Tables tables_;
    Cleaner cleaner_;
    ChunkData data_;
    std::vector<BlockRun> freed_;  // since the last commit
    bool data_unfenced_ = false;
};

}  // namespace cairn::fs
