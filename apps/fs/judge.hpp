// Finds faults of a file system from all entries of its shards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fs/client/view.hpp"
#include "fs/message/census.hpp"

namespace cairn::fstool {

// All entries of the shards. They are taken shard by shard.
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

// A fault, in one line. `key` is the same whenever the same fault of the same thing is found.
struct Finding {
    std::string key{};
    std::string text{};
};

// Returns a text such as "0001000000000005-1122334455667788".
[[nodiscard]] std::string text_of(const fs::FileId& id);
// Returns the name as it is printed: without line ends and other bytes that control a terminal.
[[nodiscard]] std::string shown(std::string_view name);

// Finds the path of a file, any one of several.
class Paths {
public:
    // Keeps both, which outlive it.
    Paths(const std::vector<Counted::Name>& names, const fs::FileId& root);
    // Returns "file ID" for a file without a path from the root.
    [[nodiscard]] std::string of(const fs::FileId& id) const;
    [[nodiscard]] std::string of(const Counted::Name& name) const;

private:
    std::unordered_map<fs::FileId, const Counted::Name*, fs::IdHash> by_child_;
    fs::FileId root_;
};

// Returns the faults, in order. If the file system is in use meanwhile, some of them are none.
[[nodiscard]] std::vector<Finding> judge(const Counted& counted, const fs::View& view);

}  // namespace cairn::fstool
