#include "fs/message/hello.hpp"

#include <algorithm>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kMostCountersBytes = kMostHelloBytes - 16;  // head and length take 10

enum class Kind : std::uint16_t {
    Hello = 1,
    Welcome,
    ChannelRequest,
    Refusal,
    BuffersRequest,
    CountersRequest,
    CountersAnswer,
};

// Makes a message of fields, and of bytes after them.
template <class... Fields>
std::vector<std::uint8_t> message(Kind kind, std::span<const std::uint8_t> tail, const Fields&... fields) {
    std::vector<std::uint8_t> bytes(kMostHelloBytes);
    FieldWriter out(bytes);
    out(kHelloMagic, kHelloVersion, kind, fields...);
    CAIRN_ASSERT(!out.failed() && tail.size() <= bytes.size() - out.bytes());
    std::ranges::copy(tail, bytes.begin() + out.bytes());
    bytes.resize(out.bytes() + tail.size());
    return bytes;
}

// Begins to read a message. Returns false if it is not of this kind.
bool begin(FieldReader& in, Kind wanted) {
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    Kind kind{};
    in(magic, version, kind);
    return !in.failed() && magic == kHelloMagic && version == kHelloVersion && kind == wanted;
}

// Reads a message of one text.
std::optional<std::string> parse_text(std::span<const std::uint8_t> bytes, Kind kind) {
    FieldReader in(bytes);
    std::string_view text;
    if (!begin(in, kind)) {
        return std::nullopt;
    }
    in(text);
    return in.is_at_end() ? std::optional(std::string(text)) : std::nullopt;
}

}  // namespace

std::vector<std::uint8_t> bytes_of(const Hello& hello) {
    return message(Kind::Hello, {}, hello.client);
}

std::optional<Hello> parse_hello(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    Hello hello;
    if (!begin(in, Kind::Hello)) {
        return std::nullopt;
    }
    in(hello.client);
    return in.is_at_end() ? std::optional(hello) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const Welcome& welcome) {
    CAIRN_ASSERT(welcome.table.has_value());
    std::vector<std::uint8_t> tail;
    for (const std::uint16_t shard : welcome.local) {
        tail.push_back(static_cast<std::uint8_t>(shard));
        tail.push_back(static_cast<std::uint8_t>(shard >> 8U));
    }
    const std::vector<std::uint8_t> table = welcome.table->bytes();
    tail.insert(tail.end(), table.begin(), table.end());
    return message(Kind::Welcome, tail, welcome.client, welcome.root, welcome.chunk_bytes, welcome.spread,
                   welcome.daemons, welcome.placement_key, welcome.shape.slots, welcome.shape.data_bytes,
                   static_cast<std::uint16_t>(welcome.local.size()));
}

std::optional<Welcome> parse_welcome(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    Welcome welcome;
    if (!begin(in, Kind::Welcome)) {
        return std::nullopt;
    }
    std::uint16_t local = 0;
    in(welcome.client, welcome.root, welcome.chunk_bytes, welcome.spread, welcome.daemons, welcome.placement_key,
       welcome.shape.slots, welcome.shape.data_bytes, local);
    for (std::uint16_t i = 0; i != local && !in.failed(); ++i) {
        in(welcome.local.emplace_back());
    }
    if (in.failed() || welcome.local.empty() || welcome.spread > Spread::Koyama || !welcome.shape.is_valid() ||
        welcome.daemons == 0 || welcome.daemons > kSlots || welcome.chunk_bytes == 0) {
        return std::nullopt;
    }
    welcome.table = SlotTable::parse(in.rest());
    return welcome.table ? std::optional(std::move(welcome)) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const ChannelRequest& request) {
    return message(Kind::ChannelRequest, {}, request.shard);
}

std::optional<ChannelRequest> parse_channel_request(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    ChannelRequest request;
    if (!begin(in, Kind::ChannelRequest)) {
        return std::nullopt;
    }
    in(request.shard);
    return in.is_at_end() ? std::optional(request) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const BuffersRequest& request) {
    return message(Kind::BuffersRequest, {}, request.bytes);
}

std::optional<BuffersRequest> parse_buffers_request(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    BuffersRequest request;
    if (!begin(in, Kind::BuffersRequest)) {
        return std::nullopt;
    }
    in(request.bytes);
    const bool is_sound = request.bytes % kPageBytes == 0 && request.bytes <= BuffersRequest::kMost;
    return in.is_at_end() && is_sound ? std::optional(request) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const Refusal& refusal) {
    return message(Kind::Refusal, {}, std::string_view(refusal.text).substr(0, 1024));
}

std::optional<Refusal> parse_refusal(std::span<const std::uint8_t> bytes) {
    const auto text = parse_text(bytes, Kind::Refusal);
    return text ? std::optional(Refusal{*text}) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const CountersRequest& /*request*/) {
    return message(Kind::CountersRequest, {});
}

std::optional<CountersRequest> parse_counters_request(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    return begin(in, Kind::CountersRequest) && in.is_at_end() ? std::optional(CountersRequest{}) : std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const CountersAnswer& answer) {
    std::string_view text = answer.text;
    if (text.size() > kMostCountersBytes) {
        text = text.substr(0, text.rfind('\n', kMostCountersBytes - 1) + 1);
    }
    return message(Kind::CountersAnswer, {}, text);
}

std::optional<CountersAnswer> parse_counters_answer(std::span<const std::uint8_t> bytes) {
    const auto text = parse_text(bytes, Kind::CountersAnswer);
    return text ? std::optional(CountersAnswer{*text}) : std::nullopt;
}

}  // namespace cairn::fs
