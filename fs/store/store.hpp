// Store: what one shard keeps on its medium. See README.md.
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

// What a store is made with. Ids and keys are drawn by the caller.
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

// The records of one operation: whole or not at all.
class Change {
public:
    void put(const Record& record) { put_record(records_, record); }
    // Blocks that a record of this change names, and no one else.
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
    Grows,    // is refused when the store is full
    Shrinks,  // gives space back: has room in a full store too
    Marks,    // the store's own, of a few bytes: has room where that has none left, and the cleaning is to make some
};

struct StoreUse {
    std::uint32_t blocks = 0;  // for data and log
    std::uint32_t free_blocks = 0;
    std::uint32_t log_units = 0;
    std::uint64_t live_bytes = 0;     // of the log's records
    bool is_to_be_cleaned = false;    // clean() makes room
    std::uint32_t cleaning_pace = 0;  // bytes to be cleaned for each one that comes
    bool cleaning_is_stuck = false;
};

struct Scrubbed {
    std::uint32_t blocks = 0;  // that were compared
    std::uint32_t damaged = 0;
    std::uint32_t next = 0;  // the place of the first one that was not; 0: there is none
};

// One thread uses a store. The medium outlives it.
class Store {
public:
    // Makes an empty store; what the medium had is lost. Errors: the region or the chunks' size is out of range.
    static Result<std::unique_ptr<Store>> format(Medium& medium, const StoreShape& shape);
    // Reads the log. Errors: there is no store; it is another version's, of another size, or damaged.
    static Result<std::unique_ptr<Store>> open(Medium& medium);

    [[nodiscard]] const Tables& tables() const noexcept { return tables_; }
    [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return superblock_.chunk_bytes; }
    [[nodiscard]] std::uint64_t store_id() const noexcept { return superblock_.store_id; }
    [[nodiscard]] StoreUse use() const noexcept;
    // True on a medium of pages: see sync().
    [[nodiscard]] bool is_paged() const noexcept { return medium_.granularity() == Granularity::Page; }

    // Makes an operation's change, seen by everybody from now on, and durable after the next commit(). Returns false,
    // and changes nothing, if it has no room: the blocks that it brought are free again. A change is at most
    // Log::kMostRecordBytes long (asserted). It is empty afterwards.
    [[nodiscard]] bool apply(Change& change, Need need);
    // Whether a change of so many bytes has room.
    [[nodiscard]] bool has_room(std::size_t bytes, Need need) noexcept;
    // Nothing comes of the change: the blocks that it brought are free again, and it is empty.
    void discard(Change& change);
    // All changes so far are durable when this returns; on a medium of pages, after the next sync().
    void commit();
    // On a medium of pages: all changes so far are durable when this returns, and space that they gave back is free.
    // Elsewhere as commit(). Errors: see Medium::sync().
    Status sync();
    // Cleans the log a little if it is to be cleaned: reads about so many bytes of it. Commits. Returns true if there
    // is more to do at once; a medium of pages needs a sync() for each unit.
    bool clean(std::uint32_t bytes);

    // Takes blocks for a part of a chunk, which is within it (asserted). Returns nothing if they are not free.
    [[nodiscard]] std::optional<PendingWrite> begin_write(const ChunkId& chunk, std::uint64_t generation,
                                                          std::uint32_t offset, std::uint32_t bytes);
    // How the bytes of a pending write come into its blocks.
    [[nodiscard]] ChunkData& data() noexcept { return data_; }
    // The bytes are there. Adds the chunk's record to the change, which is applied next: what the chunk has now is
    // taken over, unless it is of another generation. The blocks are the change's.
    void finish_write(PendingWrite& write, Change& change);
    void give_up(PendingWrite& write);
    // Adds a chunk's record without what lies behind its first `bytes`. Returns false if there is no block for the last
    // part of them.
    [[nodiscard]] bool cut(const ChunkId& chunk, std::uint64_t generation, std::uint32_t bytes, Change& change);

    // Copies a part of a chunk; holes are zeros. Returns false if a block's checksum refuses it.
    [[nodiscard]] bool read(const ChunkId& chunk, std::uint32_t offset, std::span<std::uint8_t> to) const;
    // Compares blocks of a chunk with their checksums: those at place `from` and behind it, no more than `most`.
    [[nodiscard]] Scrubbed scrub(const ChunkId& chunk, std::uint32_t from = 0, std::uint32_t most = ~0U) const;
    // The blocks of a part of a chunk stay as they are until release().
    [[nodiscard]] Hold hold(const ChunkId& chunk, std::uint32_t offset, std::uint32_t bytes);
    void release(Hold& hold);

    // Asserts what always holds between calls: each block has one owner, and the map knows that. For tests and fsck.
    // `pending` are the blocks of writes under way.
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
