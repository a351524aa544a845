#include "fs/shard/sweeper.hpp"

#include <algorithm>

namespace cairn::fs {

void Sweeper::run() {
    if (!state_.is_alone() && state_.time.now >= due_) {
        due_ = Instant::never();
        sweep();
    }
}

std::vector<ChunkId> Sweeper::chunks_of_others(std::size_t part) const {
    std::vector<ChunkId> chunks;
    state_.store.tables().chunks().for_each_of(part, [&](const ChunkId& id, const ChunkState& /*unused*/) {
        if (!state_.is_home(id.file)) {
            chunks.push_back(id);
        }
    });
    std::ranges::sort(chunks);
    return chunks;
}

void Sweeper::remove(const std::vector<ChunkId>& chunks) {
    for (const ChunkId& chunk : chunks) {
        state_.change.put(Gone{chunk});
        if (state_.change.records().size() > Log::kMostRecordBytes / 2) {
            (void)state_.apply(Need::Shrinks);  // without room, the next round does it
        }
    }
    if (!state_.change.records().empty()) {
        (void)state_.apply(Need::Shrinks);
    }
}

// A file's home is asked once for all its chunks of a part of the table; one question at a time.
// mutants: fs-sweeper-sweep
Task Sweeper::sweep() {
    for (std::size_t part = 0; part != Table<ChunkId, ChunkState>::kParts; ++part) {
        const std::vector<ChunkId> chunks = chunks_of_others(part);
        for (std::size_t i = 0; i != chunks.size();) {
            const FileId file = chunks[i].file;
            std::vector<ChunkId> of_file;
            for (; i != chunks.size() && chunks[i].file == file; ++i) {
                of_file.push_back(chunks[i]);
            }
            const PeerStatRequest request{file};
            const PeerAnswer answer = co_await state_.peers.ask(state_.home_of(file), request);
            if (answer.error == ENOENT) {
                remove(of_file);
            } else if (answer.error != 0) {
                suspect();
            }
        }
    }
}

}  // namespace cairn::fs
