// What is wrong with a file system, told from all that its shards have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fs/client/view.hpp"
#include "fs/message/census.hpp"

namespace cairn::fstool {

// All that the shards have. Things are taken shard by shard.
struct Counted {
    struct File {
        fs::CountedFile facts{};
        fs::ShardNumber shard = 0;
    };
    struct Name {
        fs::CountedName facts{};  // without its text
        std::string text{};
        fs::ShardNumber shard = 0;
    };
    struct Chunk {
        fs::CountedChunk facts{};
        fs::ShardNumber shard = 0;
    };

    std::vector<File> files{};
    std::vector<Name> names{};
    std::vector<Chunk> chunks{};
    std::uint64_t under_way = 0;  // changes that the shards had begun
    std::uint64_t blocks = 0;     // that were compared
};

// What is wrong, in a line. `key` is the same whenever the same thing is found wrong in the same way.
struct Finding {
    std::string key{};
    std::string text{};
};

// "0001000000000005-1122334455667788"
[[nodiscard]] std::string text_of(const fs::FileId& id);
// As it is printed: without line ends and other bytes that a terminal obeys.
[[nodiscard]] std::string shown(std::string_view name);

// Which path a file has. Of several, any.
class Paths {
public:
    // Both outlive it.
    Paths(const std::vector<Counted::Name>& names, const fs::FileId& root);
    // Returns "file ID" for a file without a path from the root.
    [[nodiscard]] std::string of(const fs::FileId& id) const;
    [[nodiscard]] std::string of(const Counted::Name& name) const;

private:
    std::unordered_map<fs::FileId, const Counted::Name*, fs::IdHash> by_child_;
    fs::FileId root_;
};

// Returns what is wrong, in order. Of a file system that is used meanwhile, some of it is not.
[[nodiscard]] std::vector<Finding> judge(const Counted& counted, const fs::View& view);

}  // namespace cairn::fstool
