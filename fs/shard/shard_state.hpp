// State that the parts of a shard share.
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>

#include "fs/shard/attributes.hpp"
#include "fs/shard/directories.hpp"
#include "fs/shard/gates.hpp"
#include "fs/shard/grants.hpp"
#include "fs/shard/leases.hpp"
#include "fs/shard/replies.hpp"
#include "fs/shard/shard.hpp"

namespace cairn::fs {

// Returned instead of an answer's length: the call is not answered yet.
constexpr std::uint32_t kLater = 0;
// As kLater; the call is made again once ShardState::waits_for is open.
constexpr std::uint32_t kWaits = ~std::uint32_t{0};

// For each directory, when a name was last put in or taken out since its times were written or set. Writing an inode
// for each name would double the log. So the times are written once a second, and a crash may lose a second of them.
using TouchedDirectories = std::map<FileId, std::int64_t>;

struct ShardState {
    Store& store;
    const ClusterFacts facts;
    Placement placement;
    ShardNumber number;
    Grants grants;
    Peers& peers;
    Replies& replies;
    LentDirectories lent;
    ShardTime time{};
    Leases leases{};
    TouchedDirectories touched{};
    Instant grace_ends{};  // until then, clients that had files open before a restart may come back
    BorrowedDirectories borrowed{};
    Gates gates{};
    Gate waits_for{};  // the gate that the present call waits for, if it waits
    ShardCounters counters{};
    Change change{};                   // the present call's; empty between calls
    std::uint32_t sequence = 0;        // the present call's
    std::uint64_t appended_bytes = 0;  // bytes appended to the log in this turn
    bool lacks_room = false;           // a change was refused for want of room in this turn

    [[nodiscard]] bool is_mine(std::uint16_t slot) const noexcept { return facts.table.owner(slot) == number; }
    [[nodiscard]] bool is_home(const FileId& file) const noexcept {
        return file.home_slot() < kSlots && is_mine(file.home_slot());
    }
    // Returns the shard of the file's home slot. `file` has one (asserted).
    [[nodiscard]] ShardNumber home_of(const FileId& file) const noexcept { return facts.table.owner(file.home_slot()); }
    [[nodiscard]] bool is_alone() const noexcept { return facts.table.shards() == 1; }
    [[nodiscard]] std::uint16_t slot_of(const FileId& directory, std::string_view name) const noexcept {
        return placement.slot_of(directory.place, directory.random, name);
    }
    [[nodiscard]] const InodeState* inode(const FileId& file) const noexcept { return store.tables().inode(file); }
    // True if a client may have the file open. A file without names stays as long as that holds.
    [[nodiscard]] bool may_be_open(const FileId& file) const { return time.now < grace_ends || leases.is_open(file); }
    // Returns the error for a call about a file that this shard does not have.
    [[nodiscard]] std::int32_t error_of_missing(const FileId& file) const noexcept {
        return file.home_slot() < kSlots && !is_mine(file.home_slot()) ? kErrorOtherShard : ESTALE;
    }
    [[nodiscard]] std::uint32_t chunk_of(std::uint64_t offset) const noexcept {
        return static_cast<std::uint32_t>(offset / store.chunk_bytes());
    }
    // Returns the attributes that clients see.
    [[nodiscard]] Attributes seen(const InodeState& state) const noexcept {
        Attributes attributes = attributes_of(state.inode);
        const auto touched_at = is_directory(attributes.mode) ? touched.find(attributes.id) : touched.end();
        if (touched_at != touched.end()) {
            attributes.modified_ns = touched_at->second;
            attributes.changed_ns = std::max(attributes.changed_ns, touched_at->second);
        }
        return attributes;
    }
    void touch(const FileId& directory) { touched[directory] = time.wall_ns; }

    // Applies the present change. Returns false, and changes nothing, if the store is full.
    [[nodiscard]] bool apply(Need need) {
        appended_bytes += change.records().size();
        const bool had_room = store.apply(change, need);
        lacks_room = lacks_room || !had_room;
        return had_room;
    }
    void give_back_change() { store.discard(change); }
    // As apply(), and keeps the call's outcome: a retry finds it, also after a restart.
    [[nodiscard]] bool apply_answered(const Call& call, Need need, std::int64_t result = 0) {
        change.put(AnswerRecord{{call.client, call.slot}, sequence, result});
        return apply(need);
    }
    // True if the file's gate is closed. The present call then waits for it.
    [[nodiscard]] bool waits_for_file(const FileId& file) {
        if (!gates.any()) {
            return false;
        }
        waits_for = {Gate::Kind::File, file, {}};
        return !gates.is_open(waits_for);
    }
    // True if there is no room for a change that gives space back, while the cleaner can make some. The present call
    // then waits.
    [[nodiscard]] bool waits_for_room() {
        waits_for = {Gate::Kind::Room, {}, {}};
        const bool is_closed = !gates.is_open(waits_for);
        if (!is_closed && (store.has_room(Log::kMostRecordBytes, Need::Shrinks) || !store.use().is_to_be_cleaned)) {
            return false;
        }
        lacks_room = true;
        if (!is_closed) {
            gates.close(waits_for);
        }
        return true;
    }
    // Lets the waiting calls go on if there is room now, or never will be.
    void open_room() {
        const Gate room{Gate::Kind::Room, {}, {}};
        if (!gates.is_open(room) &&
            (store.has_room(Log::kMostRecordBytes, Need::Shrinks) || !store.use().is_to_be_cleaned)) {
            gates.open(room);
        }
    }
    // Returns a copy to change, with the times that clients see.
    [[nodiscard]] Inode seen_copy(const InodeState& state) const noexcept {
        Inode inode = copy_of(state);
        const Attributes attributes = seen(state);
        inode.modified_ns = attributes.modified_ns;
        inode.changed_ns = attributes.changed_ns;
        return inode;
    }
};

}  // namespace cairn::fs
