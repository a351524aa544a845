#include "fs/shard/peer_service.hpp"

namespace cairn::fs {

bool PeerService::take(ShardNumber from, std::span<const std::uint8_t> message) {
    const std::optional<PeerMessage> parsed = parse_peer_message(message);
    if (!parsed) {
        return false;
    }
    if (const auto* const answered = std::get_if<PeerAnswer>(&parsed->what)) {
        state_.peers.take_answer(from, parsed->number, *answered);
    } else {
        answer(from, std::vector<std::uint8_t>(message.begin(), message.end()));
    }
    return true;
}

LoneTask PeerService::answer(ShardNumber from, std::vector<std::uint8_t> message) {
    const std::optional<PeerMessage> parsed = parse_peer_message(message);
    const PeerAnswer answer = co_await serve(from, std::get<PeerRequest>(parsed->what));
    state_.peers.answer(from, parsed->number, answer);
}

PeerAnswer PeerService::touch(const TouchRequest& request) {
    if (state_.inode(request.directory) != nullptr) {
        std::int64_t& touched = state_.touched[request.directory];
        touched = std::max(touched, request.at_ns);
    }
    return {};
}

Co<PeerAnswer> PeerService::stat(PeerStatRequest request) {
    const InodeState* const file = state_.inode(request.file);
    co_return file == nullptr ? PeerAnswer{ENOENT}
                              : PeerAnswer{0, state_.may_be_open(request.file), state_.seen(*file)};
}

Co<PeerAnswer> PeerService::serve(ShardNumber from, PeerRequest request) {
    if (const auto* const lend = std::get_if<LendRequest>(&request)) {
        co_return co_await lending_.lend(from, *lend);
    }
    if (const auto* const recall = std::get_if<RecallRequest>(&request)) {
        co_return lending_.give_back(*recall);
    }
    if (const auto* const touched = std::get_if<TouchRequest>(&request)) {
        co_return touch(*touched);
    }
    if (const auto* const asked = std::get_if<PeerStatRequest>(&request)) {
        co_return co_await stat(*asked);
    }
    if (const auto* const count = std::get_if<CountRequest>(&request)) {
        co_return co_await counts_.count(from, *count);
    }
    if (const auto* const cut = std::get_if<CutRequest>(&request)) {
        co_return co_await cuts_.cut_chunks(*cut);
    }
    if (const auto* const remove = std::get_if<RemoveDirectoryRequest>(&request)) {
        co_return co_await places_.remove_directory(from, *remove);
    }
    if (const auto* const place = std::get_if<PlaceRequest>(&request)) {
        co_return co_await places_.place(from, *place);
    }
    if (const auto* const asked = std::get_if<ParentRequest>(&request)) {
        co_return places_.parent(*asked);
    }
    if (const auto* const set = std::get_if<SetParentRequest>(&request)) {
        co_return co_await places_.set_parent(*set);
    }
    co_return co_await turns_.serve(from, std::get<MoveTurnRequest>(request));
}

}  // namespace cairn::fs
