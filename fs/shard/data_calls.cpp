#include "fs/shard/data_calls.hpp"

#include <algorithm>

#include "fs/rules/ranges.hpp"

namespace cairn::fs {

// Judges bytes of a request. They lie in one chunk of this shard and in the caller's memory, and the grant has the
// rights.
int DataCalls::judge_piece(const Call& call, const FileId& file, const Grant& grant, std::uint32_t wanted,
                           std::uint64_t offset, std::uint32_t bytes, std::uint32_t at) const {
    const std::uint64_t chunk_bytes = state_.store.chunk_bytes();
    if (!state_.grants.allows(file, call.client, grant, wanted)) {
        return EBADF;
    }
    if (offset >= longest_file(state_.store.chunk_bytes())) {
        return EFBIG;
    }
    if (bytes == 0 || bytes > chunk_bytes - offset % chunk_bytes || !call.memory(at, bytes)) {
        return EINVAL;
    }
    const bool is_mine = file.home_slot() < kSlots &&
                         state_.is_mine(Placement::slot_of_chunk(file.home_slot(), state_.chunk_of(offset)));
    return is_mine ? 0 : kErrorOtherShard;
}

std::uint32_t DataCalls::read(const Call& call, const ReadRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const int error =
        judge_piece(call, request.file, request.grant, kMayRead, request.offset, request.bytes, request.at);
    if (error != 0) {
        return room.error(error);
    }
    DataAnswer answer;
    answer.bytes = request.bytes;
    if (state_.is_home(request.file)) {
        const InodeState* const inode = state_.inode(request.file);
        if (inode == nullptr) {
            return room.error(ESTALE);
        }
        answer.is_home = true;
        answer.size = inode->inode.size;
        answer.generation = inode->inode.generation;
        const std::uint64_t left = answer.size > request.offset ? answer.size - request.offset : 0;
        answer.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(request.bytes, left));
    }
    const ChunkId chunk{request.file, state_.chunk_of(request.offset)};
    const auto in_chunk = static_cast<std::uint32_t>(request.offset % state_.store.chunk_bytes());
    if (answer.bytes != 0 && !state_.store.read(chunk, in_chunk, *call.memory(request.at, answer.bytes))) {
        ++state_.counters.damaged;
        return room.error(EIO);
    }
    return room.ok(answer);
}

Inode DataCalls::written(const Call& call, const InodeState& state, std::uint64_t end) const {
    Inode inode = copy_of(state);
    inode.size = std::max(inode.size, end);
    inode.modified_ns = state_.time.wall_ns;
    inode.changed_ns = state_.time.wall_ns;
    if (!call.who.is_superuser()) {
        inode.mode = mode_without_ids(inode.mode);
    }
    return inode;
}

int DataCalls::write_piece(const Call& call, const WriteRequest& request, const InodeState* home) {
    const ChunkId chunk{request.file, state_.chunk_of(request.offset)};
    const ChunkState* const before = state_.store.tables().chunk(chunk);
    const std::uint64_t cut_at =
        std::max(before == nullptr ? 0 : before->generation, home == nullptr ? 0 : home->inode.generation);
    // A generation of the future would keep all other clients from writing. If the home is another shard, it may be
    // true.
    if (request.generation < cut_at || (home != nullptr && request.generation != cut_at)) {
        return kErrorOtherGeneration;
    }
    const auto in_chunk = static_cast<std::uint32_t>(request.offset % state_.store.chunk_bytes());
    // The chunk's present bytes are kept: cuts have removed from it all that they had to.
    std::optional<PendingWrite> write = state_.store.begin_write(
        chunk, before == nullptr ? request.generation : before->generation, in_chunk, request.bytes);
    if (!write) {
        state_.lacks_room = true;
        return ENOSPC;
    }
    state_.store.data().fill(*write, 0, *call.memory(request.at, request.bytes));
    state_.store.finish_write(*write, state_.change);
    if (home != nullptr) {
        state_.change.put(written(call, *home, request.offset + request.bytes));
    }
    return state_.apply(Need::Grows) ? 0 : ENOSPC;
}

std::uint32_t DataCalls::write(const Call& call, const WriteRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    int error = judge_piece(call, request.file, request.grant, kMayWrite, request.offset, request.bytes, request.at);
    const bool is_home = state_.is_home(request.file);
    const InodeState* const home = is_home ? state_.inode(request.file) : nullptr;
    if (error == 0 && is_home && home == nullptr) {
        error = ESTALE;
    }
    error = error != 0 ? error : write_piece(call, request, home);
    if (error != 0) {
        return room.error(error);
    }
    DataAnswer answer{request.bytes, is_home};
    if (home != nullptr) {
        answer.size = state_.inode(request.file)->inode.size;
        answer.generation = state_.inode(request.file)->inode.generation;
    }
    return room.ok(answer);
}

std::uint32_t DataCalls::extend(const Call& call, const ExtendRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const InodeState* const state = state_.inode(request.file);
    if (state == nullptr) {
        return room.error(state_.error_of_missing(request.file));
    }
    if (!state_.grants.allows(request.file, call.client, request.grant, kMayWrite)) {
        return room.error(EBADF);
    }
    if (request.end > longest_file(state_.store.chunk_bytes())) {
        return room.error(EFBIG);
    }
    if (request.generation != state->inode.generation) {
        return room.error(kErrorOtherGeneration);
    }
    state_.change.put(written(call, *state, request.end));
    if (!state_.apply(Need::Grows)) {
        return room.error(ENOSPC);
    }
    const Inode& inode = state_.inode(request.file)->inode;
    return room.ok(DataAnswer{0, true, 0, inode.size, inode.generation});
}

std::uint32_t DataCalls::reserve(const Call& call, const ReserveRequest& request, const AnswerRoom& room) {
    if (state_.waits_for_file(request.file)) {
        return kWaits;
    }
    const InodeState* const state = state_.inode(request.file);
    if (state == nullptr) {
        return room.error(state_.error_of_missing(request.file));
    }
    if (!state_.grants.allows(request.file, call.client, request.grant, kMayWrite)) {
        return room.error(EBADF);
    }
    const std::uint64_t longest = longest_file(state_.store.chunk_bytes());
    const std::uint64_t offset = state->inode.size;
    if (request.bytes != 0 && offset >= longest) {
        return room.error(EFBIG);
    }
    const std::uint64_t end = offset + std::min(request.bytes, longest - offset);
    state_.change.put(written(call, *state, end));
    if (!state_.apply_answered(call, Need::Grows, static_cast<std::int64_t>(offset))) {
        return room.error(ENOSPC);
    }
    return room.ok(DataAnswer{0, true, offset, end, state_.inode(request.file)->inode.generation});
}

}  // namespace cairn::fs
