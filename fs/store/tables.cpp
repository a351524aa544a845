#include "fs/store/tables.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::fs {

namespace {

// Appends the blocks of `old` that no extent of `kept` has. Both are in order of their place in the chunk. A block that
// stays keeps its place.
void subtract(const std::vector<Extent>& old, std::span<const Extent> kept, std::vector<BlockRun>& freed) {
    auto next = kept.begin();
    for (const Extent& extent : old) {
        std::uint32_t from = 0;  // place in the extent
        const auto free_up_to = [&](std::uint32_t to) {
            if (to > from) {
                freed.push_back({extent.run.first + from, to - from});
            }
        };
        while (next != kept.end() && next->at + next->run.count <= extent.at) {
            ++next;
        }
        for (auto at = next; at != kept.end() && at->at < extent.at + extent.run.count; ++at) {
            const std::uint32_t begin = std::max(at->at, extent.at);
            const std::uint32_t end = std::min(at->at + at->run.count, extent.at + extent.run.count);
            const bool same = at->run.first + (begin - at->at) == extent.run.first + (begin - extent.at);
            if (same) {
                free_up_to(begin - extent.at);
                from = end - extent.at;
            }
        }
        free_up_to(extent.run.count);
    }
}

}  // namespace

std::uint64_t Tables::hash_of(std::string_view name) const noexcept {
    std::uint64_t hash = name.size();
    while (!name.empty()) {
        std::uint64_t word = 0;
        std::memcpy(&word, name.data(), std::min(name.size(), sizeof(word)));
        hash = sip_hash(name_key_, hash, word);
        name.remove_prefix(std::min(name.size(), sizeof(word)));
    }
    return hash;
}

const DentryState* Tables::dentry(const FileId& parent, std::string_view name) const {
    const Names* const directory = directories_.find(parent);
    return directory == nullptr ? nullptr : directory->find(hash_of(name), name);
}

struct Tables::Applier {
    Tables& tables;
    const LogSpot& spot;
    std::vector<BlockRun>& freed;

    void operator()(const Inode& inode) const {
        InodeState& state = tables.inodes_[inode.id];
        state.target = inode.target;
        state.inode = inode;
        state.inode.target = {};
        tables.account(state.spot, spot);
    }
    void operator()(const Dentry& dentry) const {
        DentryState& state = tables.directories_[dentry.parent].put(tables.hash_of(dentry.name), dentry.name);
        state.child = dentry.child;
        state.mode = dentry.mode;
        tables.account(state.spot, spot);
    }
    void operator()(const Chunk& chunk) const {
        ChunkState& state = tables.chunks_[chunk.id];
        subtract(state.extents, chunk.extents, freed);
        if (chunk.id.index != 0) {
            tables.further_chunks_[chunk.id.file].insert(chunk.id.index);
        }
        state.generation = chunk.generation;
        state.extents.assign(chunk.extents.begin(), chunk.extents.end());
        tables.account(state.spot, spot);
    }
    void operator()(const AnswerRecord& answer) const {
        AnswerState& state = tables.answers_[answer.id];
        state.sequence = answer.sequence;
        state.result = answer.result;
        tables.account(state.spot, spot);
    }
    void operator()(const Intent& intent) const {
        IntentState& state = tables.intents_[intent.number];
        state.said.assign(intent.said.begin(), intent.said.end());
        tables.account(state.spot, spot);
    }
    void operator()(const NextUnit&) const {}
    void operator()(const Life&) const {}
    void operator()(const Synced&) const {}
    void operator()(const Gone& gone) const { std::visit(*this, gone.what); }
    void operator()(const FileId& id) const { forget(tables.inodes_, id); }
    void operator()(const AnswerId& id) const { forget(tables.answers_, id); }
    void operator()(const Gone::IntentNumber& intent) const { forget(tables.intents_, intent.number); }
    void operator()(const ChunkId& id) const {
        if (const ChunkState* const state = tables.chunks_.find(id); state != nullptr) {
            subtract(state->extents, {}, freed);
            forget(tables.chunks_, id);
            forget_further(id);
        }
    }
    void forget_further(const ChunkId& id) const {
        auto* const further = id.index == 0 ? nullptr : tables.further_chunks_.find(id.file);
        if (further != nullptr && further->erase(id.index) != 0 && further->empty()) {
            tables.further_chunks_.erase(id.file);
        }
    }
    void operator()(const Gone::Name& name) const {
        Names* const directory = tables.directories_.find(name.parent);
        if (directory == nullptr) {
            return;
        }
        const std::uint64_t hash = tables.hash_of(name.name);
        const DentryState* const found = directory->find(hash, name.name);
        if (found == nullptr) {
            return;
        }
        tables.live_bytes_ -= found->spot.bytes;
        directory->erase(hash, name.name);
        if (directory->empty()) {
            tables.directories_.erase(name.parent);
        }
    }

private:
    template <class Id, class Object>
    void forget(Table<Id, Object>& table, const Id& id) const {
        if (Object* const object = table.find(id); object != nullptr) {
            tables.live_bytes_ -= object->spot.bytes;
            table.erase(id);
        }
    }
};

void Tables::apply(const Record& record, const LogSpot& spot, std::vector<BlockRun>& freed) {
    std::visit(Applier{*this, spot, freed}, record);
}

struct Tables::SpotFinder {
    Tables& tables;

    LogSpot* operator()(const Inode& inode) const { return of(tables.inodes_.find(inode.id)); }
    LogSpot* operator()(const Chunk& chunk) const { return of(tables.chunks_.find(chunk.id)); }
    LogSpot* operator()(const AnswerRecord& answer) const { return of(tables.answers_.find(answer.id)); }
    LogSpot* operator()(const Intent& intent) const { return of(tables.intents_.find(intent.number)); }
    LogSpot* operator()(const Dentry& dentry) const {
        return of(const_cast<DentryState*>(tables.dentry(dentry.parent, dentry.name)));
    }
    LogSpot* operator()(const Gone&) const { return nullptr; }
    LogSpot* operator()(const NextUnit&) const { return nullptr; }
    LogSpot* operator()(const Life&) const { return nullptr; }
    LogSpot* operator()(const Synced&) const { return nullptr; }

private:
    template <class Object>
    static LogSpot* of(Object* object) {
        return object == nullptr ? nullptr : &object->spot;
    }
};

LogSpot* Tables::spot_of(const Record& record) {
    return std::visit(SpotFinder{*this}, record);
}

bool Tables::is_live(const Record& record, const LogSpot& spot) const {
    const LogSpot* const now = const_cast<Tables*>(this)->spot_of(record);
    return now != nullptr && now->at == spot.at;
}

void Tables::move(const Record& record, const LogSpot& spot) {
    LogSpot* const now = spot_of(record);
    CAIRN_ASSERT(now != nullptr);
    account(*now, spot);
}

std::optional<std::uint32_t> Tables::chunk_before(const FileId& file, std::uint64_t index) const noexcept {
    if (const auto* const further = further_chunks_.find(file); further != nullptr) {
        const auto behind =
            index > UINT32_MAX ? further->end() : further->lower_bound(static_cast<std::uint32_t>(index));
        if (behind != further->begin()) {
            return *std::prev(behind);
        }
    }
    return index != 0 && chunk({file, 0}) != nullptr ? std::optional<std::uint32_t>(0) : std::nullopt;
}

}  // namespace cairn::fs
