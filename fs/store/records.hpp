// The records of a store, and their form in the log.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "fs/rules/ids.hpp"
#include "fs/rules/names.hpp"
#include "fs/store/blocks.hpp"

namespace cairn::fs {

constexpr std::uint32_t kMostIntentBytes = 8192;

// A file's attributes, at its home. Times are ns since 1970.
struct Inode {
    FileId id{};
    std::uint32_t mode = 0;  // type and permissions, as in st_mode
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t links = 0;  // number of its names; for a directory: number of its subdirectories, plus two
    std::uint64_t size = 0;
    std::uint64_t generation = 0;  // of its data; counts truncations
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    std::int64_t accessed_ns = 0;
    std::int64_t born_ns = 0;
    std::uint64_t leases = 0;   // bits for clients that may have it open; 0: no client has
    std::string_view target{};  // of a symbolic link
};

// A name in a directory.
struct Dentry {
    FileId parent{};
    FileId child{};
    std::uint32_t mode = 0;  // the child's type, as in st_mode
    std::string_view name{};
};

// Blocks of a chunk: `run` holds block `at` and the blocks after it.
struct Extent {
    std::uint32_t at = 0;
    BlockRun run{};

    friend constexpr bool operator==(const Extent&, const Extent&) noexcept = default;
};

// A chunk's data. Extents are in order and do not overlap. Bytes between them are zero.
struct Chunk {
    ChunkId id{};
    std::uint64_t generation = 0;  // the file's at the time of the write
    std::span<const Extent> extents{};
};

// The outcome of a client's call.
struct AnswerRecord {
    AnswerId id{};
    std::uint32_t sequence = 0;
    std::int64_t result = 0;
};

// A change at several shards that is under way. The shards know the meaning of its bytes.
struct Intent {
    std::uint64_t number = 0;
    std::span<const std::uint8_t> said{};
};

// An object is gone.
struct Gone {
    struct Name {
        FileId parent{};
        std::string_view name{};
    };
    struct IntentNumber {
        std::uint64_t number = 0;
    };
    std::variant<FileId, Name, ChunkId, AnswerId, IntentNumber> what{};
};

// The log goes on in another unit.
struct NextUnit {
    std::uint32_t unit = 0;
};

// The store was opened. Each such record of a store differs from the others.
struct Life {
    std::uint64_t edition = 0;
    std::uint64_t store_id = 0;
};

// When this record was staged, all entries before it and the data that they show were on the medium.
struct Synced {};

// Strings and spans refer to the entry that was read.
using Record = std::variant<Inode, Dentry, Chunk, AnswerRecord, Intent, Gone, NextUnit, Life, Synced>;

// Appends a record to an entry. Lengths are within the limits (asserted).
void put_record(std::vector<std::uint8_t>& entry, const Record& record);

// Reads the records of an entry one after the other.
class RecordReader {
public:
    explicit RecordReader(std::span<const std::uint8_t> records) noexcept : rest_(records) {}
    // Returns the next record, or nothing after the last one. Also returns nothing if no valid record follows: see
    // failed(). A chunk's extents are valid until the next call.
    [[nodiscard]] std::optional<Record> next();
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    // Returns the bytes of the record that next() returned.
    [[nodiscard]] std::span<const std::uint8_t> raw() const noexcept { return raw_; }

private:
    std::span<const std::uint8_t> rest_;
    std::span<const std::uint8_t> raw_{};
    std::vector<Extent> extents_;
    bool failed_ = false;
};

}  // namespace cairn::fs
