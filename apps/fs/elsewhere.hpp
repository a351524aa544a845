// Names and chunks of shards that are not this daemon's: operations on them cross the network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/client/view.hpp"

namespace cairn::fstool {

class Elsewhere {
public:
    explicit Elsewhere(std::shared_ptr<const fs::View> view) : view_(std::move(view)) {}

    // Returns false if all shards are this daemon's.
    [[nodiscard]] bool is_anywhere() const noexcept { return view_->table().shards() != view_->welcome().local.size(); }
    [[nodiscard]] bool has_name(const fs::FileId& directory, std::string_view name) const noexcept {
        return has_slot(view_->slot_of(directory, name));
    }
    // Returns the offset in the file of an offset that counts only the chunks of other daemons.
    [[nodiscard]] std::uint64_t offset_of(const fs::FileId& file, std::uint64_t offset) {
        const std::uint32_t nth = view_->chunk_of(offset);
        for (std::uint32_t chunk = chunks_.empty() ? 0 : chunks_.back() + 1; chunks_.size() <= nth; ++chunk) {
            if (has_slot(fs::Placement::slot_of_chunk(file.home_slot(), chunk))) {
                chunks_.push_back(chunk);
            }
        }
        return std::uint64_t{chunks_[nth]} * view_->chunk_bytes() + offset % view_->chunk_bytes();
    }

private:
    [[nodiscard]] bool has_slot(std::uint16_t slot) const noexcept {
        const fs::ShardNumber owner = view_->owner(slot);
        return view_->gateway(owner) != owner;
    }

    const std::shared_ptr<const fs::View> view_;
    std::vector<std::uint32_t> chunks_;  // chunks of the one file that other daemons have
};

}  // namespace cairn::fstool
