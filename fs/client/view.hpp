// A client's knowledge of its file system.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "fs/message/hello.hpp"

namespace cairn::fs {

// As the daemon said at one meeting. A view does not change.
class View {
public:
    View(std::uint64_t meeting, Welcome welcome)
        : meeting_(meeting),
          welcome_(std::move(welcome)),
          placement_(welcome_.spread, welcome_.daemons, welcome_.placement_words()) {}

    // Returns the number of the meeting, counted by the client.
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_; }
    [[nodiscard]] const Welcome& welcome() const noexcept { return welcome_; }
    [[nodiscard]] const SlotTable& table() const noexcept { return *welcome_.table; }
    [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return welcome_.chunk_bytes; }
    [[nodiscard]] std::uint32_t chunk_of(std::uint64_t offset) const noexcept {
        return static_cast<std::uint32_t>(offset >> std::countr_zero(welcome_.chunk_bytes));
    }
    [[nodiscard]] std::uint16_t slot_of(const FileId& directory, std::string_view name) const noexcept {
        return placement_.slot_of(directory.place, directory.random, name);
    }
    [[nodiscard]] ShardNumber owner(std::uint16_t slot) const noexcept { return table().owner(slot % kSlots); }
    // Returns the shard of this machine that leads to another one. A shard of this machine leads to itself.
    [[nodiscard]] ShardNumber gateway(ShardNumber shard) const noexcept {
        const auto& local = welcome_.local;
        return std::ranges::find(local, shard) != local.end() ? shard : local[shard % local.size()];
    }

private:
    std::uint64_t meeting_;
    Welcome welcome_;
    Placement placement_;
};

}  // namespace cairn::fs
