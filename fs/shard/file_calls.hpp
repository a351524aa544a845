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
    // Returns kLater also if other shards have to do something first: see needs_others().
    [[nodiscard]] std::uint32_t set_attributes(const Call& call, const SetAttributesRequest& request,
                                               const AnswerRoom& room);
    // Sets the attributes here. Other shards have done their part. This call has closed the file's gate.
    [[nodiscard]] std::uint32_t change_here(const Call& call, const SetAttributesRequest& request,
                                            const AnswerRoom& room);
    // The part of other shards in a call, before it changes anything.
    enum class Others : std::uint8_t { Nothing, Cut, Recall };
    [[nodiscard]] Others needs_others(const SetAttributesRequest& request) const;
    // Sets attributes. Returns 0, or the reason why not. Adds records for chunks that are cut, but not the inode's.
    [[nodiscard]] int set(const Call& call, const SetAttributesRequest& request, Inode& inode);
    [[nodiscard]] std::uint32_t read_link(const ReadLinkRequest& request, const AnswerRoom& room) const;

private:
    [[nodiscard]] int set_size(const Call& call, const SetAttributesRequest& request, Inode& inode);

    ShardState& state_;
    Cutter& cutter_;
};

}  // namespace cairn::fs
