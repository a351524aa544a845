#include "fs/shard/cutter.hpp"

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

// Most chunks that one change removes. The record of a removed chunk is 32 bytes long.
constexpr std::uint32_t kMostRemoved = 128;

}  // namespace

int Cutter::cut_chunks(const FileId& file, std::uint64_t generation, std::uint64_t from, std::uint64_t& to) {
    const std::uint64_t chunk_bytes = state_.store.chunk_bytes();
    const std::uint64_t kept = (from + chunk_bytes - 1) / chunk_bytes;
    std::uint64_t end = (to + chunk_bytes - 1) / chunk_bytes;
    std::uint32_t removed = 0;
    for (; end > kept && removed != kMostRemoved; ++removed) {
        const std::optional<std::uint32_t> last = state_.store.tables().chunk_before(file, end);
        if (!last || *last < kept) {
            end = kept;
            break;
        }
        state_.change.put(Gone{ChunkId{file, *last}});
        end = *last;
    }
    if (end > kept) {
        to = end * chunk_bytes;
        return 0;
    }
    const auto in_last = static_cast<std::uint32_t>(from % chunk_bytes);
    const ChunkId last{file, static_cast<std::uint32_t>(kept - 1)};
    if (in_last != 0 && !state_.store.cut(last, generation, in_last, state_.change)) {
        state_.lacks_room = true;
        to = kept * chunk_bytes;  // if anything was removed, there are free blocks after this change
        return removed == 0 ? ENOSPC : 0;
    }
    to = from;
    return 0;
}

// Cuts from the end on, so that after each step the file is shorter and whole.
int Cutter::cut(Inode& inode, std::uint64_t size) {
    ++inode.generation;
    return cut_chunks(inode.id, inode.generation, size, inode.size);
}

void Cutter::remove(Inode inode) {
    inode.links = 0;
    if (has_chunks_elsewhere(inode)) {
        state_.change.put(inode);
        remove_later(inode.id);
        return;
    }
    const int error = cut(inode, 0);
    CAIRN_ASSERT(error == 0);  // no bytes are left to copy
    if (inode.size == 0) {
        state_.change.put(Gone{inode.id});
        ++state_.counters.removed_files;
    } else {
        state_.change.put(inode);
        remove_here(inode.id);
    }
}

std::optional<Cutter::Done> Cutter::step() {
    if (jobs_.empty() || state_.waits_for_room()) {
        return std::nullopt;
    }
    const Job job = jobs_.front();
    jobs_.pop_front();
    const InodeState* const state = state_.inode(job.file);
    if (state == nullptr) {
        return Done{job.token, false, job.file, ENOENT};
    }
    return job.what == Job::What::Cut ? cut_step(job, copy_of(*state)) : remove_step(job, copy_of(*state));
}

std::optional<Cutter::Done> Cutter::cut_step(const Job& job, Inode inode) {
    const Done done{job.token, false, job.file, 0};
    if (inode.size <= job.size) {
        return done;
    }
    if (cut(inode, job.size) != 0) {
        state_.give_back_change();
        return Done{job.token, false, job.file, ENOSPC};
    }
    state_.change.put(inode);
    if (!state_.apply(Need::Shrinks)) {
        return Done{job.token, false, job.file, ENOSPC};
    }
    if (inode.size > job.size) {
        jobs_.push_back(job);
        return std::nullopt;
    }
    return done;
}

// A client may have opened the file again after a restart. Then its close() removes the file.
std::optional<Cutter::Done> Cutter::remove_step(const Job& job, const Inode& inode) {
    if (inode.links != 0 || state_.may_be_open(job.file)) {
        return std::nullopt;
    }
    if (job.what == Job::What::Remove && has_chunks_elsewhere(inode)) {
        return Done{kNobody, true, job.file, 0};
    }
    Inode left = inode;
    const int error = cut(left, 0);
    CAIRN_ASSERT(error == 0);
    const bool is_gone = left.size == 0;
    if (is_gone) {
        state_.change.put(Gone{left.id});
    } else {
        state_.change.put(left);
    }
    if (!state_.apply(Need::Shrinks)) {
        jobs_.push_back(job);  // the cleaner makes room
        return std::nullopt;
    }
    state_.counters.removed_files += is_gone ? 1 : 0;
    if (!is_gone) {
        jobs_.push_back(job);
    }
    return std::nullopt;
}

}  // namespace cairn::fs
