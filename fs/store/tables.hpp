// The state of a store's objects, built from the records of its log.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/store/log.hpp"
#include "fs/store/names.hpp"
#include "fs/store/records.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

// Objects by their ids, in many small tables, so that growth never moves all objects at once.
template <class Id, class Object>
class Table {
public:
    [[nodiscard]] Object* find(const Id& id) noexcept {
        auto& part = parts_[part_of(id)];
        const auto found = part.find(id);
        return found == part.end() ? nullptr : &found->second;
    }
    [[nodiscard]] const Object* find(const Id& id) const noexcept { return const_cast<Table*>(this)->find(id); }
    Object& operator[](const Id& id) {
        const auto [place, made] = parts_[part_of(id)].try_emplace(id);
        size_ += made ? 1 : 0;
        return place->second;
    }
    void erase(const Id& id) { size_ -= parts_[part_of(id)].erase(id); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    template <class Do>
    void for_each(Do&& run) const {
        for (std::size_t part = 0; part != kParts; ++part) {
            for_each_of(part, run);
        }
    }
    // An object never changes its part.
    static constexpr std::size_t kParts = 256;
    template <class Do>
    void for_each_of(std::size_t part, Do&& run) const {
        for (const auto& [id, object] : parts_[part]) {
            run(id, object);
        }
    }

private:
    [[nodiscard]] static std::size_t part_of(const Id& id) noexcept { return (IdHash{}(id) >> 40U) % kParts; }

    std::array<absl::flat_hash_map<Id, Object, IdHash>, kParts> parts_;
    std::size_t size_ = 0;
};

struct InodeState {
    Inode inode{};       // without its target
    std::string target;  // for a symbolic link
    LogSpot spot{};
};

struct ChunkState {
    std::uint64_t generation = 0;
    std::vector<Extent> extents;
    LogSpot spot{};
};

struct AnswerState {
    std::uint32_t sequence = 0;
    std::int64_t result = 0;
    LogSpot spot{};
};

struct IntentState {
    std::vector<std::uint8_t> said;
    LogSpot spot{};
};

class Tables {
public:
    explicit Tables(std::uint64_t name_key) noexcept : name_key_{name_key, ~name_key} {}

    // Takes a record as the object's state. Appends blocks to `freed` that belong to no chunk any more.
    void apply(const Record& record, const LogSpot& spot, std::vector<BlockRun>& freed);
    // True if the record at this place is an object's state.
    [[nodiscard]] bool is_live(const Record& record, const LogSpot& spot) const;
    // Sets a new place for the record of a live object.
    void move(const Record& record, const LogSpot& spot);

    [[nodiscard]] const InodeState* inode(const FileId& id) const noexcept { return inodes_.find(id); }
    [[nodiscard]] const ChunkState* chunk(const ChunkId& id) const noexcept { return chunks_.find(id); }
    // Returns the number of a file's last chunk before this one, or nothing if there is none.
    [[nodiscard]] std::optional<std::uint32_t> chunk_before(const FileId& file, std::uint64_t index) const noexcept;
    [[nodiscard]] const AnswerState* answer(const AnswerId& id) const noexcept { return answers_.find(id); }
    [[nodiscard]] const DentryState* dentry(const FileId& parent, std::string_view name) const;
    [[nodiscard]] const Names* names(const FileId& parent) const noexcept { return directories_.find(parent); }
    [[nodiscard]] const Table<FileId, InodeState>& inodes() const noexcept { return inodes_; }
    [[nodiscard]] const Table<ChunkId, ChunkState>& chunks() const noexcept { return chunks_; }
    [[nodiscard]] const Table<AnswerId, AnswerState>& answers() const noexcept { return answers_; }
    [[nodiscard]] const Table<std::uint64_t, IntentState>& intents() const noexcept { return intents_; }
    [[nodiscard]] const Table<FileId, Names>& directories() const noexcept { return directories_; }
    [[nodiscard]] std::uint64_t live_bytes() const noexcept { return live_bytes_; }  // of records
    [[nodiscard]] std::uint64_t hash_of(std::string_view name) const noexcept;

private:
    struct Applier;
    struct SpotFinder;
    [[nodiscard]] LogSpot* spot_of(const Record& record);
    void account(LogSpot& spot, const LogSpot& now) noexcept {
        live_bytes_ += std::uint64_t{now.bytes} - spot.bytes;
        spot = now;
    }

    SipKey name_key_;
    Table<FileId, InodeState> inodes_;
    Table<FileId, Names> directories_;  // by the directory's id
    Table<ChunkId, ChunkState> chunks_;
    // Each file's chunks but chunk 0, which is the only chunk of most files. So a cut of a sparse file visits existing
    // chunks only.
    Table<FileId, absl::btree_set<std::uint32_t>> further_chunks_;
    Table<AnswerId, AnswerState> answers_;
    Table<std::uint64_t, IntentState> intents_;
    std::uint64_t live_bytes_ = 0;
};

}  // namespace cairn::fs
