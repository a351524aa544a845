// A file's data: read and write at a chunk's shard, extend and reserve at the file's home.
#pragma once

#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class DataCalls {
public:
    explicit DataCalls(ShardState& state) noexcept : state_(state) {}

    [[nodiscard]] std::uint32_t read(const Call& call, const ReadRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t write(const Call& call, const WriteRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t extend(const Call& call, const ExtendRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t reserve(const Call& call, const ReserveRequest& request, const AnswerRoom& room);

private:
    [[nodiscard]] int judge_piece(const Call& call, const FileId& file, const Grant& grant, std::uint32_t wanted,
                                  std::uint64_t offset, std::uint32_t bytes, std::uint32_t at) const;
    [[nodiscard]] Inode written(const Call& call, const InodeState& state, std::uint64_t end) const;
    [[nodiscard]] int write_piece(const Call& call, const WriteRequest& request, const InodeState* home);

    ShardState& state_;
};

}  // namespace cairn::fs
