#include "fs/shard/sweeper.hpp"

#include <algorithm>

namespace cairn::fs {

void Sweeper::run() {
    if (!state_.is_alone() && state_.time.now >= due_) {
        due_ = Instant::never();
        sweep();
    }
}

std::vector<Sweeper::Seen> Sweeper::chunks_of_others(std::size_t part) const {
    std::vector<Seen> chunks;
    state_.store.tables().chunks().for_each_of(part, [&](const ChunkId& id, const ChunkState& chunk) {
        if (!state_.is_home(id.file)) {
            chunks.push_back({id, chunk.spot});
        }
    });
    std::ranges::sort(chunks, {}, &Seen::id);
    return chunks;
}

// Without room, the next round removes them.
void Sweeper::apply() {
    if (!state_.apply(Need::Shrinks)) {
        suspect();
    }
}

void Sweeper::remove(const std::vector<Seen>& chunks) {
    for (const Seen& chunk : chunks) {
        state_.change.put(Gone{chunk.id});
        if (state_.change.records().size() > Log::kMostRecordBytes / 2) {
            apply();
        }
    }
    if (!state_.change.records().empty()) {
        apply();
    }
}

// A client that has the file open may be about to make it longer. If a chunk was written since, its writer has opened
// the file since.
void Sweeper::judge(const std::vector<Seen>& chunks, const PeerAnswer& home) {
    if (home.error == ENOENT) {
        remove(chunks);
        return;
    }
    std::vector<Seen> beyond;
    bool may_stay = home.error != 0;
    for (const Seen& chunk : chunks) {
        if (home.error != 0 || std::uint64_t{chunk.id.index} * state_.store.chunk_bytes() < home.attributes.size) {
            continue;
        }
        const ChunkState* const now = state_.store.tables().chunk(chunk.id);
        if (!home.flag && now != nullptr && now->spot == chunk.spot) {
            beyond.push_back(chunk);
        } else {
            may_stay = may_stay || now != nullptr;
        }
    }
    remove(beyond);
    if (may_stay) {
        suspect();
    }
}

// Asks a file's home once for all its chunks in a part of the table. Only one question is under way.
LoneTask Sweeper::sweep() {
    for (std::size_t part = 0; part != Table<ChunkId, ChunkState>::kParts; ++part) {
        const std::vector<Seen> chunks = chunks_of_others(part);
        for (std::size_t i = 0; i != chunks.size();) {
            const FileId file = chunks[i].id.file;
            std::vector<Seen> of_file;
            for (; i != chunks.size() && chunks[i].id.file == file; ++i) {
                of_file.push_back(chunks[i]);
            }
            const PeerStatRequest request{file};
            const PeerAnswer answer = co_await state_.peers.ask(state_.home_of(file), request);
            judge(of_file, answer);
        }
    }
}

}  // namespace cairn::fs
