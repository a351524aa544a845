#include "fs/shard/counts.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kMostLinks = 1U << 30U;

}  // namespace

int Counts::judge_more(const InodeState* file) noexcept {
    if (file == nullptr || file->inode.links == 0) {
        return ENOENT;
    }
    return is_directory(file->inode.mode) ? EPERM : file->inode.links == kMostLinks ? EMLINK : 0;
}

void Counts::take_name(const InodeState& file) {
    Inode inode = copy_of(file);
    --inode.links;
    inode.changed_ns = state_.time.wall_ns;
    if (inode.links == 0 && !state_.may_be_open(inode.id)) {
        cutter_.remove(inode);
    } else {
        state_.change.put(inode);
    }
}

namespace {

[[nodiscard]] int judge_less_or_more(const InodeState* file, bool is_more) noexcept {
    return is_more ? Counts::judge_more(file) : file == nullptr || file->inode.links == 0 ? ENOENT : 0;
}

}  // namespace

Co<PeerAnswer> Counts::count(ShardNumber from, CountRequest request) {
    const Gate gate{Gate::Kind::File, request.file, {}};
    while (!state_.gates.is_open(gate) || (!request.is_more && state_.waits_for_room())) {
        const Gate closed = state_.gates.is_open(gate) ? state_.waits_for : gate;
        co_await state_.gates.opened(closed);
    }
    const InodeState* const file = state_.inode(request.file);
    if (steps_.was_made(from, request.step)) {
        co_return PeerAnswer{0, false, file == nullptr ? Attributes{} : state_.seen(*file)};
    }
    if (const int error = judge_less_or_more(file, request.is_more); error != 0) {
        co_return PeerAnswer{error};
    }
    if (!request.is_more) {
        take_name(*file);
    } else {
        Inode inode = copy_of(*file);
        ++inode.links;
        inode.changed_ns = state_.time.wall_ns;
        state_.change.put(inode);
    }
    steps_.put_made(from, request.step);
    if (!state_.apply(request.is_more ? Need::Grows : Need::Shrinks)) {
        co_return PeerAnswer{ENOSPC};
    }
    const InodeState* const now = state_.inode(request.file);
    co_return PeerAnswer{0, false, now == nullptr ? Attributes{} : state_.seen(*now)};
}

}  // namespace cairn::fs
