#include "fs/shard/client_calls.hpp"

#include <type_traits>
#include <utility>

namespace cairn::fs {

namespace {

// Calls that must be made once, however often they are sent.
template <class Request>
constexpr bool kIsMadeOnce = std::is_same_v<Request, CreateRequest> || std::is_same_v<Request, RemoveRequest> ||
                             std::is_same_v<Request, RenameRequest> || std::is_same_v<Request, LinkRequest> ||
                             std::is_same_v<Request, ReserveRequest>;

// Calls that also a full store takes.
template <class Request>
constexpr bool kGivesBack = std::is_same_v<Request, RemoveRequest> || std::is_same_v<Request, RenameRequest> ||
                            std::is_same_v<Request, SetAttributesRequest>;

}  // namespace

std::uint32_t ClientCalls::again(const Call& /*call*/, const auto& /*request*/, std::int64_t /*result*/) {
    return room().ok(EmptyAnswer{});
}

void ClientCalls::take(const Call& call) {
    const std::optional<ParsedRequest> parsed = parse_request(call.request);
    std::uint32_t bytes = 0;
    if (!parsed) {
        ++state_.counters.malformed;
        bytes = room().error(kErrorMalformed);
    } else if (parsed->head.shard != state_.number) {
        ++state_.counters.other_shard;
        bytes = room().error(kErrorOtherShard);
    } else {
        state_.sequence = parsed->head.sequence;
        bytes = std::visit([&](const auto& request) { return run(call, request); }, parsed->request);
        CAIRN_ASSERT(state_.change.records().empty());
    }
    if (bytes == kWaits) {
        state_.gates.park(state_.waits_for, KeptCall(call), state_.time.now);
    } else if (bytes != kLater) {
        state_.replies.stage(call.token, bytes);
    }
}

template <class Request>
std::uint32_t ClientCalls::run(const Call& call, const Request& request) {
    if constexpr (kIsMadeOnce<Request>) {
        if (const std::optional<std::int64_t> result = parts_.kept.find(call)) {
            ++state_.counters.repeated;
            return again(call, request, *result);
        }
    }
    if (kGivesBack<Request> && state_.waits_for_room()) {
        return kWaits;
    }
    return handle(call, request);
}

std::uint32_t ClientCalls::handle(const Call& call, const WalkRequest& request) {
    return parts_.lookups.walk(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const CreateRequest& request) {
    return parts_.changes.create(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& /*call*/, const StatRequest& request) {
    return parts_.files.stat(request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const OpenRequest& request) {
    return parts_.files.open(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const CloseRequest& request) {
    return parts_.files.close(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const ReadRequest& request) {
    return parts_.data.read(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const WriteRequest& request) {
    return parts_.data.write(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const ExtendRequest& request) {
    return parts_.data.extend(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const ReserveRequest& request) {
    return parts_.data.reserve(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const SetAttributesRequest& request) {
    const FileCalls::Others others = parts_.files.needs_others(request);
    const std::uint32_t bytes = parts_.files.set_attributes(call, request, room());
    if (bytes == kLater && others == FileCalls::Others::Cut) {
        parts_.cuts.cut(KeptCall(call));
    } else if (bytes == kLater && others == FileCalls::Others::Recall) {
        change_directory(KeptCall(call));
    }
    return bytes;
}

std::uint32_t ClientCalls::handle(const Call& call, const RemoveRequest& request) {
    return parts_.changes.remove(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const ListRequest& request) {
    return parts_.lookups.list(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const RenameRequest& request) {
    return parts_.changes.rename(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const LinkRequest& request) {
    return parts_.changes.link(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& /*call*/, const ReadLinkRequest& request) {
    return parts_.files.read_link(request, room());
}

std::uint32_t ClientCalls::handle(const Call& /*call*/, const StatFsRequest& /*request*/) {
    const StoreUse use = state_.store.use();
    const Tables& tables = state_.store.tables();
    StatFsAnswer answer;
    answer.bytes = std::uint64_t{use.blocks} * kBlockBytes;
    answer.free_bytes = std::uint64_t{use.free_blocks} * kBlockBytes;
    answer.files = tables.inodes().size();
    answer.chunks = tables.chunks().size();
    answer.log_bytes = std::uint64_t{use.log_units} * kUnitBytes;
    return room().ok(answer);
}

std::uint32_t ClientCalls::handle(const Call& call, const SyncRequest& /*request*/) {
    if (!state_.store.is_paged()) {
        return room().ok(EmptyAnswer{});
    }
    syncs_.push_back(call.token);
    return kLater;
}

std::uint32_t ClientCalls::handle(const Call& call, const CensusRequest& request) {
    return census_.page(call, request, room());
}

std::uint32_t ClientCalls::handle(const Call& call, const ScrubRequest& request) {
    return census_.scrub(call, request, room());
}

std::uint32_t ClientCalls::again(const Call& call, const CreateRequest& request, std::int64_t result) {
    return parts_.changes.create_again(call, request, result, room());
}

std::uint32_t ClientCalls::again(const Call& /*call*/, const LinkRequest& request, std::int64_t /*result*/) {
    if (state_.is_home(request.file)) {
        return parts_.files.stat({request.file}, room());
    }
    AttributesAnswer answer;  // the file's home has its other attributes
    answer.attributes.id = request.file;
    return room().ok(answer);
}

std::uint32_t ClientCalls::again(const Call& call, const ReserveRequest& request, std::int64_t result) {
    const InodeState* const inode = state_.inode(request.file);
    if (inode == nullptr) {
        return room().error(state_.error_of_missing(request.file));
    }
    if (!state_.grants.allows(request.file, call.client, request.grant, kMayWrite)) {
        return room().error(EBADF);  // the request may differ from the call that was made
    }
    return room().ok(
        DataAnswer{0, true, static_cast<std::uint64_t>(result), inode->inode.size, inode->inode.generation});
}

LoneTask ClientCalls::change_directory(KeptCall kept) {
    const Call call = kept.call();
    const auto request = kept.request<SetAttributesRequest>();
    ClosedGate gate(state_.gates, {Gate::Kind::File, request.file, {}});
    (void)co_await parts_.lending.recall(request.file);
    const std::uint32_t bytes = parts_.files.change_here(call, request, room());
    gate.open();
    state_.replies.stage(call.token, bytes);
}

}  // namespace cairn::fs
