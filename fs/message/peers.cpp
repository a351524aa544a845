#include "fs/message/peers.hpp"

#include <algorithm>
#include <cstring>

#include "fs/message/variants.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint8_t kPeerVersion = 1;
constexpr std::uint8_t kPeerAnswer = 0xff;  // in place of a request's kind

}  // namespace

Who who_of(const Credentials& credentials) noexcept {
    const auto groups = credentials.groups.first(std::min(credentials.groups.size(), kMostGroups));
    return {credentials.uid, credentials.gid, {reinterpret_cast<const char*>(groups.data()), groups.size_bytes()}};
}

Credentials credentials_of(const Who& who, std::vector<std::uint32_t>& groups) {
    groups.resize(std::min(who.groups.size() / sizeof(std::uint32_t), kMostGroups));
    if (!groups.empty()) {
        std::memcpy(groups.data(), who.groups.data(), groups.size() * sizeof(std::uint32_t));
    }
    return {who.uid, who.gid, groups};
}

std::uint32_t put_peer_request(std::span<std::uint8_t> room, std::uint64_t number, const PeerRequest& request) {
    FieldWriter out(room);
    out(kPeerVersion, static_cast<std::uint8_t>(request.index()), number);
    write_alternative(out, request);
    return out.failed() ? 0 : out.bytes();
}

std::uint32_t put_peer_answer(std::span<std::uint8_t> room, std::uint64_t number, const PeerAnswer& answer) {
    FieldWriter out(room);
    out(kPeerVersion, kPeerAnswer, number);
    PeerAnswer::fields(out, answer);
    return out.failed() ? 0 : out.bytes();
}

std::optional<PeerMessage> parse_peer_message(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    std::optional<PeerMessage> message(std::in_place);
    std::uint8_t version = 0;
    std::uint8_t kind = 0;
    in(version, kind, message->number);
    if (in.failed() || version != kPeerVersion) {
        return std::nullopt;
    }
    if (kind == kPeerAnswer) {
        PeerAnswer::fields(in, message->what.emplace<PeerAnswer>());
        return in.is_at_end() ? message : std::nullopt;
    }
    return read_alternative(in, kind, message->what.emplace<PeerRequest>()) ? message : std::nullopt;
}

}  // namespace cairn::fs
