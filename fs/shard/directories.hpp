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

// A directory's home lends its attributes for a term. The borrower counts the term from when it asked, the home from
// when it lent, so that the home's ends last. Before the home changes what it has lent, it recalls it, or waits.
constexpr Duration kLendTerm = seconds(2);
constexpr Duration kLendDrift = milliseconds(200);  // how far two machines' clocks drift apart in a term, at most

// What this shard has borrowed.
class BorrowedDirectories {
public:
    struct Entry {
        int error = 0;  // there is no such directory, or its home does not answer
        Owned owned{};
        Instant until{};
    };
    // Returns nothing if it is to be asked for.
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

// What this shard has lent, of directories whose home it is.
class LentDirectories {
public:
    // `ended`: an earlier life of this shard, which may have lent anything, has ended by then. 0: there was none.
    explicit LentDirectories(Instant ended) noexcept
        : earlier_until_(ended == Instant{} ? ended : ended + kLendTerm + kLendDrift) {}

    void lend(const FileId& directory, ShardNumber to, Instant now);
    // Who may have the directory's attributes.
    struct Borrower {
        ShardNumber shard = 0;
        Instant until{};
    };
    [[nodiscard]] std::vector<Borrower> borrowers(const FileId& directory, Instant now);
    // The shard has let go.
    void give_back(const FileId& directory, ShardNumber shard);
    [[nodiscard]] Instant earlier_until() const noexcept { return earlier_until_; }

private:
    Instant earlier_until_;
    absl::flat_hash_map<FileId, std::vector<Borrower>, IdHash> lent_;
};

}  // namespace cairn::fs
