// Names and chunks of shards that are not this daemon's: what is done to them crosses the network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/client/view.hpp"

namespace cairn::fstool {

class Elsewhere {
public:
    explicit Elsewhere(std::shared_ptr<const fs::View> view) : view_(std::move(view)) {}

    // False: all shards are this daemon's.
    [[nodiscard]] bool is_anywhere() const noexcept { return view_->table().shards() != view_->welcome().local.size(); }
    [[nodiscard]] bool has_name(const fs::FileId& directory, std::string_view name) const noexcept {
        return has_slot(view_->slot_of(directory, name));
    }
    // The offset in a file's chunks that are elsewhere, counted as if there were no others, as one in the file.
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
    std::vector<std::uint32_t> chunks_;  // of the one file, that are elsewhere
};

}  // namespace cairn::fstool
