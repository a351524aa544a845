// Hands a client's request to the part of the shard that handles it. A repeated request gets the answer that was kept.
#pragma once

#include <optional>
#include <vector>

#include "fs/shard/census.hpp"
#include "fs/shard/cuts.hpp"
#include "fs/shard/data_calls.hpp"
#include "fs/shard/file_calls.hpp"
#include "fs/shard/kept_answers.hpp"
#include "fs/shard/name_changes.hpp"

namespace cairn::fs {

class ClientCalls {
public:
    struct Parts {
        NameLookups& lookups;
        NameChanges& changes;
        FileCalls& files;
        DataCalls& data;
        Cuts& cuts;
        Lending& lending;
        KeptAnswers& kept;
        Cutter& cutter;
    };
    ClientCalls(ShardState& state, const Parts& parts, std::optional<std::uint32_t> own_user) noexcept
        : state_(state), parts_(parts), census_(state, parts.cutter, parts.kept, own_user) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Handles a call. The call is answered now or later, or it waits and is made again.
    void take(const Call& call);
    // Returns the calls that wait for a sync of a medium of pages.
    [[nodiscard]] std::vector<CallToken> take_syncs() noexcept { return std::exchange(syncs_, {}); }

private:
    template <class Request>
    [[nodiscard]] std::uint32_t run(const Call& call, const Request& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const WalkRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const CreateRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const StatRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const OpenRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const CloseRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ReadRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const WriteRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ExtendRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ReserveRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const SetAttributesRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const RemoveRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ListRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const RenameRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const LinkRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ReadLinkRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const StatFsRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const SyncRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const CensusRequest& request);
    [[nodiscard]] std::uint32_t handle(const Call& call, const ScrubRequest& request);

    [[nodiscard]] std::uint32_t again(const Call& call, const CreateRequest& request, std::int64_t result);
    [[nodiscard]] std::uint32_t again(const Call& call, const LinkRequest& request, std::int64_t result);
    [[nodiscard]] std::uint32_t again(const Call& call, const ReserveRequest& request, std::int64_t result);
    // Answers a repeated RemoveRequest or RenameRequest: it says only that the call was made.
    [[nodiscard]] std::uint32_t again(const Call& call, const auto& request, std::int64_t result);

    // Recalls a directory's attributes from other shards before it changes them.
    LoneTask change_directory(KeptCall kept);
    [[nodiscard]] AnswerRoom room() noexcept { return state_.replies.room(); }

    ShardState& state_;
    Parts parts_;
    Census census_;
    std::vector<CallToken> syncs_;
    Tasks tasks_;
};

}  // namespace cairn::fs
