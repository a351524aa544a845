#include "lib/broker/messages.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lib/base/assert.hpp"
#include "lib/base/endian.hpp"
#include "lib/base/parsed.hpp"

namespace cairn::broker {

namespace {

constexpr std::uint32_t kMagic = 0x43726e42;  // "CrnB"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kMostEcn = 3;

// A message's number is its place in the variant.
struct RawHead {
    Be32 magic;
    std::uint8_t version;
    std::uint8_t kind;
    std::array<std::uint8_t, 2> zeros;
};
struct RawNothing {};
struct RawSlot {
    std::uint8_t slot;
    std::uint8_t zero;
    Be16 sockets;
};
struct RawCount {
    Be16 count;
};
struct RawWhy {
    std::uint8_t why;
};
struct RawStray {
    std::array<std::uint8_t, 16> remote;
    Be16 udp_source_port;
    Be16 index;
    Be16 bytes;
    std::uint8_t ecn;
    std::uint8_t zero;
};
struct RawClaim {
    Be32 ask;
    Be64 service;
    std::uint8_t flag;  // in a Claim: it shares; in a Claimed: it is granted
    std::uint8_t zero;
};
struct RawService {
    Be64 service;
};
struct RawWill {
    Be32 name;
    std::array<std::uint8_t, 16> remote;
    wire::MadBytes mad;
};
struct RawName {
    Be32 name;
};
struct RawCounted {
    std::uint8_t counter;
    Be64 value;
};
static_assert(sizeof(RawClaim) == 14 && sizeof(RawWill) == 20 + wire::kMadBytes);
static_assert(sizeof(RawCounted) == 9 && sizeof(RawHead) == 8 && sizeof(RawSlot) == 4 && sizeof(RawStray) == 24);
static_assert(sizeof(RawHead) + sizeof(RawStray) + port::kMaxUdpPayloadBytes <= kMostMessageBytes);

using Bytes = std::span<const std::uint8_t>;

template <class Raw>
bool is_exactly(Bytes body) noexcept {
    return body.size() == (std::is_empty_v<Raw> ? 0 : sizeof(Raw));
}

bool is_sound(const Rejoin& said) noexcept {
    return said.slot != Slot{} && said.sockets <= kMostSockets && said.slot.value < said.sockets;
}
bool is_sound(const Lent& said) noexcept {
    return said.slot != Slot{} && said.sockets <= kMostSockets && (said.sockets == 0 || said.slot.value < said.sockets);
}

template <class Said>
std::optional<Message> parse_slot(Bytes body) noexcept {
    if (!is_exactly<RawSlot>(body)) {
        return std::nullopt;
    }
    const auto raw = read_raw<RawSlot>(body.data());
    const Said said{Slot{raw.slot}, raw.sockets.get()};
    return raw.zero == 0 && is_sound(said) ? std::optional<Message>(said) : std::nullopt;
}

template <class Said>
std::optional<Message> parse_nothing(Bytes body) noexcept {
    return body.empty() ? std::optional<Message>(Said{}) : std::nullopt;
}

std::optional<Message> parse_sockets(Bytes body) noexcept {
    const std::uint16_t count = is_exactly<RawCount>(body) ? read_raw<RawCount>(body.data()).count.get() : 0U;
    return count >= 1 && count <= kMostAtOnce ? std::optional<Message>(Sockets{count}) : std::nullopt;
}

std::optional<Message> parse_refused(Bytes body) noexcept {
    constexpr auto kLast = static_cast<std::uint8_t>(Refusal::NoResources);
    if (!is_exactly<RawWhy>(body) || body[0] > kLast) {
        return std::nullopt;
    }
    return Refused{static_cast<Refusal>(body[0])};
}

std::optional<Message> parse_stray(Bytes body) noexcept {
    if (body.size() < sizeof(RawStray)) {
        return std::nullopt;
    }
    const auto raw = read_raw<RawStray>(body.data());
    const Bytes rest = body.subspan(sizeof(RawStray));
    if (rest.size() != raw.bytes.get() || rest.size() > port::kMaxUdpPayloadBytes || raw.ecn > kMostEcn ||
        raw.zero != 0) {
        return std::nullopt;
    }
    return Stray{net::IpAddress::from_v6(raw.remote), raw.udp_source_port.get(), raw.index.get(), raw.ecn, rest};
}

template <class Said>
std::optional<Message> parse_claim(Bytes body) noexcept {
    if (!is_exactly<RawClaim>(body)) {
        return std::nullopt;
    }
    const auto raw = read_raw<RawClaim>(body.data());
    if (raw.flag > 1 || raw.zero != 0) {
        return std::nullopt;
    }
    return Said{raw.ask.get(), wire::ServiceId{raw.service.get()}, raw.flag != 0};
}

std::optional<Message> parse_release(Bytes body) noexcept {
    if (!is_exactly<RawService>(body)) {
        return std::nullopt;
    }
    return Release{wire::ServiceId{read_raw<RawService>(body.data()).service.get()}};
}

std::optional<Message> parse_will(Bytes body) noexcept {
    if (!is_exactly<RawWill>(body)) {
        return std::nullopt;
    }
    const auto raw = read_raw<RawWill>(body.data());
    return Will{raw.name.get(), net::IpAddress::from_v6(raw.remote), raw.mad};
}

std::optional<Message> parse_revoke(Bytes body) noexcept {
    if (!is_exactly<RawName>(body)) {
        return std::nullopt;
    }
    return Revoke{read_raw<RawName>(body.data()).name.get()};
}

std::optional<Message> parse_counted(Bytes body) noexcept {
    if (!is_exactly<RawCounted>(body) || body[0] >= telemetry::kCounters<Counter>) {
        return std::nullopt;
    }
    return Counted{static_cast<Counter>(body[0]), read_raw<RawCounted>(body.data()).value.get()};
}

using Parser = std::optional<Message> (*)(Bytes) noexcept;
// In the order of the variant.
constexpr std::array<Parser, std::variant_size_v<Message>> kParsers{
    parse_nothing<Join>, parse_slot<Rejoin>, parse_nothing<Leave>,  parse_slot<Lent>,    parse_sockets,
    parse_refused,       parse_stray,        parse_nothing<Manage>, parse_claim<Claim>,  parse_claim<Claimed>,
    parse_release,       parse_will,         parse_revoke,          parse_nothing<Look>, parse_counted};

class Writer {
public:
    explicit Writer(MessageBytes& room) noexcept : room_(room) {}
    template <class Raw>
    void put(const Raw& raw) noexcept {
        std::memcpy(room_.data() + at_, &raw, sizeof(raw));
        at_ += sizeof(raw);
    }
    void put_bytes(Bytes bytes) noexcept {
        CAIRN_ASSERT(bytes.size() <= port::kMaxUdpPayloadBytes);
        std::copy(bytes.begin(), bytes.end(), room_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ += bytes.size();
    }
    [[nodiscard]] Bytes written() const noexcept { return std::span(room_).first(at_); }

private:
    MessageBytes& room_;
    std::size_t at_ = 0;
};

struct PutBody {
    Writer& out;

    void put_claim(std::uint32_t ask, wire::ServiceId service, bool flag) const noexcept {
        out.put(RawClaim{Be32{ask}, Be64{service.value}, flag ? std::uint8_t{1} : std::uint8_t{0}, 0});
    }
    void operator()(const Join&) const noexcept {}
    void operator()(const Leave&) const noexcept {}
    void operator()(const Manage&) const noexcept {}
    void operator()(const Claim& said) const noexcept { put_claim(said.ask, said.service, said.shares); }
    void operator()(const Claimed& said) const noexcept { put_claim(said.ask, said.service, said.granted); }
    void operator()(const Release& said) const noexcept { out.put(RawService{Be64{said.service.value}}); }
    void operator()(const Will& said) const noexcept {
        out.put(RawWill{Be32{said.name}, said.remote.octets(), said.mad});
    }
    void operator()(const Revoke& said) const noexcept { out.put(RawName{Be32{said.name}}); }
    void operator()(const Look&) const noexcept {}
    void operator()(const Counted& said) const noexcept {
        out.put(RawCounted{static_cast<std::uint8_t>(said.counter), Be64{said.value}});
    }
    void operator()(const Rejoin& said) const noexcept { out.put(RawSlot{said.slot.value, 0, Be16{said.sockets}}); }
    void operator()(const Lent& said) const noexcept { out.put(RawSlot{said.slot.value, 0, Be16{said.sockets}}); }
    void operator()(const Sockets& said) const noexcept { out.put(RawCount{Be16{said.count}}); }
    void operator()(const Refused& said) const noexcept { out.put(RawWhy{static_cast<std::uint8_t>(said.why)}); }
    void operator()(const Stray& said) const noexcept {
        const auto bytes = static_cast<std::uint16_t>(said.bytes.size());
        out.put(RawStray{said.remote.octets(), Be16{said.udp_source_port}, Be16{said.index}, Be16{bytes}, said.ecn, 0});
        out.put_bytes(said.bytes);
    }
};

}  // namespace

std::optional<Message> parse_message(Bytes bytes) noexcept {
    if (bytes.size() < sizeof(RawHead)) {
        return std::nullopt;
    }
    const auto head = read_raw<RawHead>(bytes.data());
    if (head.magic.get() != kMagic || head.version != kVersion || head.kind >= kParsers.size() ||
        head.zeros != std::array<std::uint8_t, 2>{}) {
        return std::nullopt;
    }
    return kParsers[head.kind](bytes.subspan(sizeof(RawHead)));
}

Bytes emit_message(const Message& message, MessageBytes& room) noexcept {
    Writer out(room);
    out.put(RawHead{Be32{kMagic}, kVersion, static_cast<std::uint8_t>(message.index()), {}});
    std::visit(PutBody{out}, message);
    return out.written();
}

}  // namespace cairn::broker
