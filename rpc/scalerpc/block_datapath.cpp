// Writes and reads the messages of blocks.
#include "rpc/scalerpc/block.hpp"

namespace cairn::scalerpc {

namespace {

constexpr std::uint8_t kHasGrant = 1;
constexpr std::uint8_t kHasNotice = 2;
constexpr std::uint8_t kGivenUp = 4;

void store(const RawTrailer& raw, std::span<std::uint8_t> block) noexcept {
    std::memcpy(block.data() + block.size() - sizeof(raw), &raw, sizeof(raw));
}

RawTrailer trailer_of(std::span<const std::uint8_t> block) noexcept {
    RawTrailer raw;
    std::memcpy(&raw, block.data() + block.size() - sizeof(raw), sizeof(raw));
    return raw;
}

// Returns the `bytes` before the trailer and the grant.
std::span<const std::uint8_t> payload_of(std::span<const std::uint8_t> block, std::uint32_t bytes,
                                         std::size_t behind) noexcept {
    return block.subspan(block.size() - behind - bytes, bytes);
}

}  // namespace

std::uint32_t put_request(const Request& request, std::uint32_t epoch, std::span<std::uint8_t> block) noexcept {
    const auto bytes = static_cast<std::uint32_t>(request.payload.size());
    const std::uint32_t tail = bytes + static_cast<std::uint32_t>(sizeof(RawTrailer));
    CAIRN_ASSERT(tail <= block.size());
    copy_bytes(block.data() + block.size() - tail, request.payload.data(), bytes);
    store({Be32{request.sequence}, request.type, request.given_up ? kGivenUp : std::uint8_t{0}, Be16{0},
           Be32{request.left_us}, Be32{epoch}, Be32{bytes}, Be32{valid_word(epoch, request.sequence)}},
          block);
    return tail;
}

std::uint32_t put_answer(const Answer& answer, std::span<std::uint8_t> block) noexcept {
    const News& news = answer.news;
    const bool grants = news.kind == News::Kind::Grant;
    const auto bytes = static_cast<std::uint32_t>(answer.payload.size());
    const auto behind = static_cast<std::uint32_t>(sizeof(RawTrailer) + (grants ? sizeof(RawGrant) : 0));
    CAIRN_ASSERT(bytes + behind <= block.size());
    copy_bytes(block.data() + block.size() - behind - bytes, answer.payload.data(), bytes);
    if (grants) {
        const RawGrant raw{Be64{news.grant.address}, Be32{news.grant.rkey.value}};
        std::memcpy(block.data() + block.size() - behind, &raw, sizeof(raw));
    }
    const auto flags =
        static_cast<std::uint8_t>((grants ? kHasGrant : 0) | (news.kind == News::Kind::Notice ? kHasNotice : 0));
    store({Be32{answer.sequence}, static_cast<std::uint8_t>(answer.outcome), flags, Be16{0}, Be32{news.epoch},
           Be32{news.accepted}, Be32{bytes}, Be32{valid_word(kAnswer, answer.sequence)}},
          block);
    return bytes + behind;
}

void change_epoch(std::span<std::uint8_t> block, std::uint32_t epoch) noexcept {
    RawTrailer raw = trailer_of(block);
    raw.second.set(epoch);
    raw.valid.set(valid_word(epoch, raw.sequence.get()));
    store(raw, block);
}

void set_left(std::span<std::uint8_t> block, std::uint32_t left_us) noexcept {
    RawTrailer raw = trailer_of(block);
    raw.first.set(left_us);
    store(raw, block);
}

void give_up(std::span<std::uint8_t> block) noexcept {
    RawTrailer raw = trailer_of(block);
    raw.flags = kGivenUp;
    store(raw, block);
}

void add_notice(std::span<std::uint8_t> block, const News& notice) noexcept {
    RawTrailer raw = trailer_of(block);
    raw.flags = static_cast<std::uint8_t>(raw.flags | kHasNotice);
    raw.first.set(notice.epoch);
    raw.second.set(notice.accepted);
    store(raw, block);
}

Look read_request(std::span<const std::uint8_t> block, std::uint32_t epoch, std::uint32_t sequence,
                  Request& request) noexcept {
    if (!looks_valid(block.data() + block.size(), epoch, sequence)) [[likely]] {
        return Look::Absent;
    }
    const RawTrailer raw = trailer_of(block);
    if (raw.sequence.get() != sequence || raw.second.get() != epoch) {
        return Look::Absent;
    }
    if ((raw.flags & ~kGivenUp) != 0 || raw.bytes.get() > block.size() - sizeof(raw)) {
        return Look::Nonsense;
    }
    request = {sequence, raw.kind, raw.first.get(), payload_of(block, raw.bytes.get(), sizeof(raw)), raw.flags != 0};
    return Look::There;
}

// Reads an answer. A notice makes the grant of the same answer worthless.
Look read_answer(std::span<const std::uint8_t> block, std::uint32_t sequence, Answer& answer) noexcept {
    if (!looks_valid(block.data() + block.size(), kAnswer, sequence)) [[likely]] {
        return Look::Absent;
    }
    const RawTrailer raw = trailer_of(block);
    const bool grants = (raw.flags & kHasGrant) != 0;
    const std::size_t behind = sizeof(raw) + (grants ? sizeof(RawGrant) : 0);
    if (raw.sequence.get() != sequence || raw.kind >= static_cast<std::uint8_t>(Outcome::Count) ||
        (raw.flags & ~(kHasGrant | kHasNotice)) != 0 || behind > block.size() ||
        raw.bytes.get() > block.size() - behind) {
        return Look::Nonsense;
    }
    answer = {sequence, static_cast<Outcome>(raw.kind), {}, payload_of(block, raw.bytes.get(), behind)};
    answer.news.epoch = raw.first.get();
    answer.news.accepted = raw.second.get();
    if ((raw.flags & kHasNotice) != 0) {
        answer.news.kind = News::Kind::Notice;
    } else if (grants) {
        RawGrant grant;
        std::memcpy(&grant, block.data() + block.size() - behind, sizeof(grant));
        answer.news.kind = News::Kind::Grant;
        answer.news.grant = {grant.address.get(), Rkey{grant.rkey.get()}};
    }
    return Look::There;
}

}  // namespace cairn::scalerpc
