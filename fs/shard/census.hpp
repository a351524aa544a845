// Lists what the shard has, page by page, and checks its blocks. For superusers, and for the daemon's own user.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fs/shard/cutter.hpp"
#include "fs/shard/kept_answers.hpp"
#include "fs/shard/shard_state.hpp"

namespace cairn::fs {

class Census {
public:
    // Blocks that one call compares; they take well below a millisecond.
    static constexpr std::uint32_t kMostBlocks = 256;

    Census(const ShardState& state, const Cutter& cutter, const KeptAnswers& kept,
           std::optional<std::uint32_t> own_user) noexcept
        : state_(state), cutter_(cutter), kept_(kept), own_user_(own_user) {}

    [[nodiscard]] std::uint32_t page(const Call& call, const CensusRequest& request, const AnswerRoom& room);
    [[nodiscard]] std::uint32_t scrub(const Call& call, const ScrubRequest& request, const AnswerRoom& room);

private:
    // The ids of a part of a table, in order, as they were when a reader came to the part: a table keeps no order. Only
    // the last reader's part is cached. If readers of different parts alternate, the ids are collected again.
    template <class Id>
    struct Part {
        std::size_t part = ~std::size_t{0};
        std::vector<Id> ids{};
    };
    template <class Id, class Object>
    [[nodiscard]] static std::span<const Id> ids_from(Part<Id>& part, const Table<Id, Object>& table,
                                                      const CensusCursor& cursor, const Id& first);
    // Each lists the rest of a part. Returns false if there is no more room; the cursor then says where to go on.
    [[nodiscard]] bool add_files(CensusCursor& at, CensusWriter& out);
    [[nodiscard]] bool add_names(CensusCursor& at, CensusWriter& out);
    [[nodiscard]] bool add_names_of(const FileId& directory, CensusCursor& at, CensusWriter& out);
    [[nodiscard]] bool add_chunks(CensusCursor& at, CensusWriter& out);
    [[nodiscard]] bool scrub_part(CensusCursor& at, std::uint32_t& left, CensusWriter& out);
    template <class AddPart>
    [[nodiscard]] std::uint32_t fill(CensusCursor at, CensusWriter& out, AddPart&& add_part);
    void forget() noexcept;
    [[nodiscard]] bool may_look(const Credentials& who) const noexcept;
    [[nodiscard]] CountedFile counted(const FileId& id, const InodeState& state) const noexcept;

    const ShardState& state_;
    const Cutter& cutter_;
    const KeptAnswers& kept_;
    const std::optional<std::uint32_t> own_user_;
    Part<FileId> files_{};
    Part<FileId> directories_{};
    Part<ChunkId> chunks_{};
    std::uint32_t blocks_ = 0;  // compared in the present call
};

}  // namespace cairn::fs
