// Attributes of directories, at their homes and at the other shards that have names of them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <vector>

#include "fs/placement/slot_table.hpp"
#include "fs/rules/access.hpp"
#include "fs/rules/ids.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// A directory's home lends its attributes for a term. The borrower counts the term from its question, the home from its
// answer, so the home's term ends last. Before the home changes what it has lent, it recalls it, or waits for the end.
constexpr Duration kLendTerm = seconds(2);
constexpr Duration kLendDrift = milliseconds(200);  // how far two machines' clocks drift apart in a term, at most

// The attributes that this shard has borrowed.
class BorrowedDirectories {
public:
    struct Entry {
        int error = 0;  // set if there is no such directory, or its home does not answer
        Owned owned{};
        Instant until{};
    };
    // Returns null if the attributes must be asked for.
    [[nodiscard]] const Entry* find(const FileId& directory, Instant now) const noexcept {
        const auto found = entries_.find(directory);
        return found == entries_.end() || found->second.until <= now ? nullptr : &found->second;
    }
    void put(const FileId& directory, const Entry& entry) {
        if (entries_.size() >= kMost) {
            entries_.erase(entries_.begin());
        }
        entries_.insert_or_assign(directory, entry);
    }
    void drop(const FileId& directory) { entries_.erase(directory); }

private:
    static constexpr std::size_t kMost = 65536;
    absl::flat_hash_map<FileId, Entry, IdHash> entries_;
};

// The attributes that this shard has lent. It is the directories' home.
class LentDirectories {
public:
    // `ended`: an earlier life of this shard ended at this time or before, and may have lent anything. 0: there was
    // none.
    explicit LentDirectories(Instant ended) noexcept
        : earlier_until_(ended == Instant{} ? ended : ended + kLendTerm + kLendDrift) {}

    void lend(const FileId& directory, ShardNumber to, Instant now);
    // A shard that may have the directory's attributes.
    struct Borrower {
        ShardNumber shard = 0;
        Instant until{};
    };
    [[nodiscard]] std::vector<Borrower> borrowers(const FileId& directory, Instant now);
    // Notes that the shard does not use the attributes any more.
    void give_back(const FileId& directory, ShardNumber shard);
    [[nodiscard]] Instant earlier_until() const noexcept { return earlier_until_; }

private:
    Instant earlier_until_;
    absl::flat_hash_map<FileId, std::vector<Borrower>, IdHash> lent_;
};

}  // namespace cairn::fs
