// A file's attributes, at its home: stat, open, close, setattr, readlink.
#pragma once

#include "fs/shard/cutter.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class FileCalls {
public:
    FileCalls(ShardState& state, Cutter& cutter) noexcept : state_(state), cutter_(cutter) {}

    [[nodiscard]] std::uint32_t stat(const StatRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t open(const Call& call, const OpenRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t close(const Call& call, const CloseRequest& request, const AnswerRoom& room);
    // kLater also if other shards have to do something first: see needs_others().
    [[nodiscard]] std::uint32_t set_attributes(const Call& call, const SetAttributesRequest& request,
                                               const AnswerRoom& room);
    // Others have done what they have to do. The file's gate is this call's.
    [[nodiscard]] std::uint32_t change_here(const Call& call, const SetAttributesRequest& request,
                                            const AnswerRoom& room);
    // What a call needs of other shards before it changes anything.
    enum class Others : std::uint8_t { Nothing, Cut, Recall };
    [[nodiscard]] Others needs_others(const SetAttributesRequest& request) const;
    // Sets attributes, or says why not. Adds records for what is cut; not the inode's.
    [[nodiscard]] int set(const Call& call, const SetAttributesRequest& request, Inode& inode);
    [[nodiscard]] std::uint32_t read_link(const ReadLinkRequest& request, const AnswerRoom& room) const;

private:
    [[nodiscard]] int set_size(const Call& call, const SetAttributesRequest& request, Inode& inode);

    ShardState& state_;
    Cutter& cutter_;
};

}  // namespace cairn::fs
