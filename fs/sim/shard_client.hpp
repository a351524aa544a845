// A client that calls a shard of the file system, and the answer that it gets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/rules/access.hpp"

namespace cairn::fs {

// A client. `data` holds the data areas of all its channels.
struct ShardClient {
    std::uint64_t number = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::vector<std::uint32_t> groups{};
    std::vector<std::uint8_t> data = std::vector<std::uint8_t>(std::size_t{256} << 10U);
    std::uint32_t sequence = 0;  // of the last call in any slot

    [[nodiscard]] fs::Credentials who() const { return {uid, gid, groups}; }
};

// A call's answer. Texts refer to `bytes`.
template <class Answer>
struct Told {
    std::int32_t error = 0;
    Answer answer{};
    std::shared_ptr<const std::vector<std::uint8_t>> bytes{};
};

}  // namespace cairn::fs
