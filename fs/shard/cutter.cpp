#include "fs/shard/cutter.hpp"

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

// Of one change. A record that says that a chunk is gone is 32 bytes long.
constexpr std::uint32_t kMostRemoved = 128;
constexpr std::uint32_t kMostLookedFor = 4096;

}  // namespace

// From the end on: at each step the file is shorter and whole.
// mutants: fs-cutter-cut
int Cutter::cut(Inode& inode, std::uint64_t size) {
    const std::uint64_t chunk_bytes = state_.store.chunk_bytes();
    const std::uint64_t kept = (size + chunk_bytes - 1) / chunk_bytes;
    std::uint64_t end = (inode.size + chunk_bytes - 1) / chunk_bytes;
    std::uint32_t removed = 0;
    for (std::uint32_t looked = 0; end > kept && looked != kMostLookedFor && removed != kMostRemoved; ++looked) {
        const ChunkId chunk{inode.id, static_cast<std::uint32_t>(end - 1)};
        if (state_.store.tables().chunk(chunk) != nullptr) {
            state_.change.put(Gone{chunk});
            ++removed;
        }
        --end;
    }
    ++inode.generation;
    if (end > kept) {
        inode.size = end * chunk_bytes;
        return 0;
    }
    const auto in_last = static_cast<std::uint32_t>(size % chunk_bytes);
    if (in_last != 0) {
        const ChunkId last{inode.id, static_cast<std::uint32_t>(kept - 1)};
        if (!state_.store.cut(last, inode.generation, in_last, state_.change)) {
            return ENOSPC;
        }
    }
    inode.size = size;
    return 0;
}

// mutants: fs-cutter-remove
void Cutter::remove(Inode inode) {
    inode.links = 0;
    const int error = cut(inode, 0);
    CAIRN_ASSERT(error == 0);  // nothing is left to be copied
    if (inode.size == 0) {
        state_.change.put(Gone{inode.id});
        ++state_.counters.removed_files;
    } else {
        state_.change.put(inode);
        remove_later(inode.id);
    }
}

std::optional<Cutter::Done> Cutter::end(const Job& job, int error) {
    return job.token == kNobody ? std::nullopt : std::optional(Done{job.token, job.file, error});
}

// mutants: fs-cutter-step
std::optional<Cutter::Done> Cutter::step() {
    if (jobs_.empty()) {
        return std::nullopt;
    }
    const Job job = jobs_.front();
    jobs_.pop_front();
    const InodeState* const state = state_.inode(job.file);
    if (state == nullptr) {
        return end(job, ENOENT);
    }
    Inode inode = copy_of(*state);
    if (job.token == kNobody) {
        // Somebody may have opened it again meanwhile: then his close() removes it.
        if (inode.links == 0 && !state_.leases.is_open(job.file)) {
            remove(inode);
        }
    } else {
        if (inode.size <= job.size) {
            return end(job, 0);
        }
        if (const int error = cut(inode, job.size); error != 0) {
            state_.change.clear();
            return end(job, error);
        }
        state_.change.put(inode);
    }
    if (!state_.apply(Need::Shrinks)) {
        return end(job, ENOSPC);
    }
    if (job.token == kNobody) {
        return std::nullopt;
    }
    if (inode.size > job.size) {
        jobs_.push_back(job);
        return std::nullopt;
    }
    return end(job, 0);
}

}  // namespace cairn::fs
