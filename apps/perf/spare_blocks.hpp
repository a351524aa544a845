// Blocks of EAL's heap that were given to clients and never written to, kept for the next clients.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "pmd_glue/heap_block.hpp"

namespace cairn::perf {

// Keeps such blocks. EAL clears the memory that it takes back. A block that was never written to has cost no memory
// before. So clients that come and go without an operation would make the server write to all memory of EAL. Blocks
// that the system gets back are not kept.
class SpareBlocks {
public:
    using Block = std::unique_ptr<pmd::HeapBlock>;

    // Keeps a block, to which the server wrote nothing.
    void keep(Block block) {
        const std::size_t bytes = block->bytes().size();
        blocks_.emplace(bytes, std::move(block));
    }
    // Returns the shortest block that is long enough and at most twice as long as needed, or nullptr.
    [[nodiscard]] Block take(std::size_t bytes) {
        const auto found = blocks_.lower_bound(bytes);
        if (found == blocks_.end() || found->first / 2 > bytes) {
            return nullptr;
        }
        Block block = std::move(found->second);
        blocks_.erase(found);
        return block;
    }
    // Gives the longest block back to EAL. Returns false if there is none.
    bool give_up_one() {
        if (blocks_.empty()) {
            return false;
        }
        blocks_.erase(std::prev(blocks_.end()));
        return true;
    }

private:
    std::multimap<std::size_t, Block> blocks_;  // by size
};

}  // namespace cairn::perf
