#include "fs/shard/directories.hpp"

#include <algorithm>

namespace cairn::fs {

void LentDirectories::lend(const FileId& directory, ShardNumber to, Instant now) {
    std::vector<Borrower>& borrowers = lent_[directory];
    const auto found = std::ranges::find(borrowers, to, &Borrower::shard);
    const Instant until = now + kLendTerm + kLendDrift;
    if (found == borrowers.end()) {
        borrowers.push_back({to, until});
    } else {
        found->until = until;
    }
}

std::vector<LentDirectories::Borrower> LentDirectories::borrowers(const FileId& directory, Instant now) {
    const auto found = lent_.find(directory);
    if (found == lent_.end()) {
        return {};
    }
    std::erase_if(found->second, [&](const Borrower& borrower) { return borrower.until <= now; });
    std::vector<Borrower> still = found->second;
    if (still.empty()) {
        lent_.erase(found);
    }
    return still;
}

void LentDirectories::give_back(const FileId& directory, ShardNumber shard) {
    const auto found = lent_.find(directory);
    if (found == lent_.end()) {
        return;
    }
    std::erase_if(found->second, [&](const Borrower& borrower) { return borrower.shard == shard; });
    if (found->second.empty()) {
        lent_.erase(found);
    }
}

}  // namespace cairn::fs
