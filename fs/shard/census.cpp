#include "fs/shard/census.hpp"

#include <algorithm>
#include <array>

namespace cairn::fs {

namespace {

// A look at a chunk takes little time even if all of it is a hole.
constexpr std::uint32_t kMostChunks = 1024;

[[nodiscard]] ChunkId chunk_at(const CensusCursor& at) noexcept {
    return {at.id, static_cast<std::uint32_t>(at.more >> 32U)};
}

[[nodiscard]] CensusCursor cursor_at(const CensusCursor& part, const ChunkId& chunk, std::uint32_t block = 0) noexcept {
    return {part.part, chunk.file, std::uint64_t{chunk.index} << 32U | block};
}

}  // namespace

template <class Id, class Object>
std::span<const Id> Census::ids_from(Part<Id>& part, const Table<Id, Object>& table, const CensusCursor& cursor,
                                     const Id& first) {
    const bool begins = cursor == CensusCursor{cursor.part};
    if (begins || part.part != cursor.part) {
        part.part = cursor.part;
        part.ids.clear();
        table.for_each_of(cursor.part, [&](const Id& id, const Object& /*unused*/) { part.ids.push_back(id); });
        std::ranges::sort(part.ids);
    }
    return {std::ranges::lower_bound(part.ids, first), part.ids.end()};
}

CountedFile Census::counted(const FileId& id, const InodeState& state) const noexcept {
    const Inode& inode = state.inode;
    const std::optional<FileId> parent = is_directory(inode.mode) ? parent_of(state) : std::nullopt;
    const bool is_open = state_.leases.is_open(id) || kept_.grace_ends() != Instant::never();
    return {id, parent.value_or(FileId{}), inode.mode, inode.links, inode.size, is_open};
}

bool Census::add_files(CensusCursor& at, CensusWriter& out) {
    for (const FileId& id : ids_from(files_, state_.store.tables().inodes(), at, at.id)) {
        const InodeState* const state = state_.inode(id);
        if (state != nullptr && !out.add(counted(id, *state))) {
            at = {at.part, id, 0};
            return false;
        }
    }
    return true;
}

bool Census::add_names(CensusCursor& at, CensusWriter& out) {
    for (const FileId& directory : ids_from(directories_, state_.store.tables().directories(), at, at.id)) {
        if (!add_names_of(directory, at, out)) {
            return false;
        }
    }
    return true;
}

bool Census::add_names_of(const FileId& directory, CensusCursor& at, CensusWriter& out) {
    const Names* const names = state_.store.tables().names(directory);
    if (names == nullptr) {
        return true;
    }
    for (auto place = names->from(directory == at.id ? at.more : 0); place != names->end(); ++place) {
        const auto& [hash, named] = *place;
        if (!out.add(CountedName{directory, named->state.child, named->state.mode, named->name()})) {
            at = {at.part, directory, hash};
            return false;
        }
    }
    return true;
}

bool Census::add_chunks(CensusCursor& at, CensusWriter& out) {
    for (const ChunkId& id : ids_from(chunks_, state_.store.tables().chunks(), at, chunk_at(at))) {
        const ChunkState* const state = state_.store.tables().chunk(id);
        if (state == nullptr) {
            continue;
        }
        std::uint32_t blocks = 0;
        for (const Extent& extent : state->extents) {
            blocks += extent.run.count;
        }
        if (!out.add(CountedChunk{id.file, id.index, blocks})) {
            at = cursor_at(at, id);
            return false;
        }
    }
    return true;
}

bool Census::scrub_part(CensusCursor& at, std::uint32_t& left, CensusWriter& out) {
    const CensusCursor begin = at;
    std::uint32_t chunks = 0;
    for (const ChunkId& id : ids_from(chunks_, state_.store.tables().chunks(), begin, chunk_at(begin))) {
        const std::uint32_t from = id == chunk_at(begin) ? static_cast<std::uint32_t>(begin.more) : 0;
        at = cursor_at(begin, id, from);
        if (left == 0 || ++chunks == kMostChunks) {
            return false;
        }
        const Scrubbed done = state_.store.scrub(id, from, left);
        if (done.damaged != 0 && !out.add(CountedChunk{id.file, id.index, done.damaged})) {
            return false;
        }
        left -= done.blocks;
        blocks_ += done.blocks;
        if (done.next != 0) {
            at = cursor_at(begin, id, done.next);
            return false;
        }
    }
    return true;
}

void Census::forget() noexcept {
    files_ = {};
    directories_ = {};
    chunks_ = {};
}

bool Census::may_look(const Credentials& who) const noexcept {
    return who.is_superuser() || who.uid == own_user_;
}

template <class AddPart>
std::uint32_t Census::fill(CensusCursor at, CensusWriter& out, AddPart&& add_part) {
    CensusAnswer answer;
    while (at.part < Table<FileId, Names>::kParts && add_part(at)) {
        at = {at.part + 1};
    }
    answer.is_end = at.part >= Table<FileId, Names>::kParts;
    answer.next = at;
    answer.blocks = blocks_;
    answer.under_way =
        static_cast<std::uint32_t>(state_.store.tables().intents().size()) + (cutter_.is_idle() ? 0U : 1U);
    if (answer.is_end) {
        forget();
    }
    return out.finish(answer);
}

std::uint32_t Census::page(const Call& call, const CensusRequest& request, const AnswerRoom& room) {
    using Add = bool (Census::*)(CensusCursor&, CensusWriter&);
    constexpr std::array<Add, 3> kAdd{&Census::add_files, &Census::add_names, &Census::add_chunks};
    if (!may_look(call.who)) {
        return room.error(EPERM);
    }
    const auto kind = static_cast<std::size_t>(request.kind);
    if (kind >= kAdd.size()) {
        return room.error(EINVAL);
    }
    blocks_ = 0;
    CensusWriter out = room.census();
    return fill(request.cursor, out, [&](CensusCursor& at) { return (this->*kAdd[kind])(at, out); });
}

std::uint32_t Census::scrub(const Call& call, const ScrubRequest& request, const AnswerRoom& room) {
    if (!may_look(call.who)) {
        return room.error(EPERM);
    }
    if (request.blocks == 0) {
        return room.error(EINVAL);
    }
    blocks_ = 0;
    std::uint32_t left = std::min(request.blocks, kMostBlocks);
    CensusWriter out = room.census();
    return fill(request.cursor, out, [&](CensusCursor& at) { return scrub_part(at, left, out); });
}

}  // namespace cairn::fs
