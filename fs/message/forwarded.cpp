#include "fs/message/forwarded.hpp"

#include "fs/channel/segment.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kSlotsOfClient = 1024;

template <class Message>
std::uint32_t put_message(std::span<std::uint8_t> room, const Message& message) {
    FieldWriter out(room);
    Message::fields(out, message);
    return out.failed() ? 0 : out.bytes();
}

bool has_sound_data(const ForwardedCall& call, const NamedData& data) noexcept {
    if (data.bytes > kMostForwardedData || data.at != 0) {
        return false;
    }
    if (data.way == DataWay::None || !data.is_inline()) {
        return call.data.empty();
    }
    return call.data.size() == (data.way == DataWay::Brings ? data.bytes : 0);
}

}  // namespace

NamedData data_of(const Request& request) noexcept {
    if (const auto* const read = std::get_if<ReadRequest>(&request)) {
        return {DataWay::Takes, read->bytes, read->at};
    }
    if (const auto* const write = std::get_if<WriteRequest>(&request)) {
        return {DataWay::Brings, write->bytes, write->at};
    }
    return {};
}

void move_data(Request& request) noexcept {
    if (auto* const read = std::get_if<ReadRequest>(&request)) {
        read->at = 0;
    } else if (auto* const write = std::get_if<WriteRequest>(&request)) {
        write->at = 0;
    }
}

std::uint32_t put_forwarded(std::span<std::uint8_t> room, const ForwardedCall& call) {
    return put_message(room, call);
}

std::optional<ParsedForward> parse_forwarded(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    ParsedForward parsed;
    ForwardedCall& call = parsed.call;
    ForwardedCall::fields(in, call);
    if (!in.is_at_end() || call.client == 0 || call.slot >= kSlotsOfClient || call.request.size() > kRequestBytes ||
        call.who.groups.size() % sizeof(std::uint32_t) != 0 ||
        call.who.groups.size() > kMostGroups * sizeof(std::uint32_t)) {
        return std::nullopt;
    }
    const std::optional<ParsedRequest> request = parse_request(bytes_of(call.request));
    if (!request) {
        return std::nullopt;
    }
    parsed.data = data_of(request->request);
    return has_sound_data(call, parsed.data) ? std::optional(parsed) : std::nullopt;
}

std::uint32_t put_forwarded_answer(std::span<std::uint8_t> room, const ForwardedAnswer& answer) {
    return put_message(room, answer);
}

std::optional<ForwardedAnswer> parse_forwarded_answer(std::span<const std::uint8_t> bytes, const NamedData& data) {
    FieldReader in(bytes);
    ForwardedAnswer answer;
    ForwardedAnswer::fields(in, answer);
    const std::size_t most = data.way == DataWay::Takes && data.is_inline() ? data.bytes : 0;
    const bool is_sound = in.is_at_end() && answer.answer.size() <= kAnswerBytes && answer.data.size() <= most;
    return is_sound ? std::optional(answer) : std::nullopt;
}

}  // namespace cairn::fs
