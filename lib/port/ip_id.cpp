#include "lib/port/ip_id.hpp"

#include <algorithm>
#include <bit>

#include "lib/base/assert.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {

namespace {

constexpr std::size_t kBehindId = 20 - 6 + 8;  // bytes of the IPv4 and UDP headers after the ID
constexpr std::size_t kIdBytes = 2;
constexpr std::uint16_t kNear = 64;
constexpr std::int64_t kPerMillisecond = 2;
constexpr std::int64_t kFar = 0x7fff;
constexpr Duration kBeside = seconds(1);  // how long a counter is remembered next to the one heard last

}  // namespace

IpIdDeltas::IpIdDeltas() : bases_(std::make_unique<Basis[]>(std::size_t{kMaxUdpPayloadBytes} + 1)) {}

const IpIdDeltas::Basis& IpIdDeltas::basis_for(std::uint16_t udp_payload_bytes) noexcept {
    CAIRN_ASSERT(udp_payload_bytes <= kMaxUdpPayloadBytes && udp_payload_bytes >= wire::kIcrcBytes);
    Basis& basis = bases_[udp_payload_bytes];
    if (basis[0] == 0) {
        std::array<std::uint8_t, kIdBytes + kBehindId + kMaxUdpPayloadBytes> message{};
        const std::size_t bytes = kIdBytes + kBehindId + udp_payload_bytes - wire::kIcrcBytes;
        const std::uint32_t zeros = wire::crc32(0, message.data(), bytes);
        for (std::size_t bit = 0; bit < basis.size(); ++bit) {
            std::uint8_t& octet = message[bit < 8 ? 1 : 0];
            octet = static_cast<std::uint8_t>(1U << (bit % 8));
            basis[bit] = wire::crc32(0, message.data(), bytes) ^ zeros;
            octet = 0;
        }
    }
    return basis;
}

std::uint32_t IpIdDeltas::new_delta(std::uint16_t udp_payload_bytes, std::uint16_t id) noexcept {
    const Basis& basis = basis_for(udp_payload_bytes);
    Row& row = rows_[udp_payload_bytes / 4 % kRows];
    if (row.udp_payload_bytes != udp_payload_bytes) {
        row.udp_payload_bytes = udp_payload_bytes;
        for (std::uint32_t each = 1; each < kRowIds; ++each) {  // has one bit more than an earlier one
            row.deltas[each] = row.deltas[each & (each - 1)] ^ basis[static_cast<std::size_t>(std::countr_zero(each))];
        }
    }
    std::uint32_t sum = row.deltas[id % kRowIds];
    for (std::uint32_t bit = std::bit_width(kRowIds - 1); id >> bit != 0; ++bit) {
        sum ^= ((std::uint32_t{id} >> bit) & 1U) != 0 ? basis[bit] : 0U;
    }
    return sum;
}

// Solves by Gaussian elimination. The 16 words are independent, so that there is one solution or none.
std::optional<std::uint16_t> IpIdDeltas::solve(std::uint16_t udp_payload_bytes, std::uint32_t difference) noexcept {
    Basis words = basis_for(udp_payload_bytes);
    std::array<std::uint16_t, 16> bits;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        bits[i] = static_cast<std::uint16_t>(1U << i);
    }
    std::uint16_t id = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        CAIRN_ASSERT(words[i] != 0);
        const std::uint32_t pivot = words[i] & (0U - words[i]);
        for (std::size_t j = i + 1; j < words.size(); ++j) {
            if ((words[j] & pivot) != 0) {
                words[j] ^= words[i];
                bits[j] = static_cast<std::uint16_t>(bits[j] ^ bits[i]);
            }
        }
        if ((difference & pivot) != 0) {
            difference ^= words[i];
            id = static_cast<std::uint16_t>(id ^ bits[i]);
        }
    }
    return difference == 0 ? std::optional(id) : std::nullopt;
}

bool IpIdHistory::Counter::is_followed_by(std::uint16_t id, Instant now) const noexcept {
    const std::int64_t most = std::min(kFar, kNear + (now - seen).ns / 1'000'000 * kPerMillisecond);
    const auto ahead = static_cast<std::int16_t>(id - last);
    return known && ahead >= -kNear && ahead <= most;  // a negative distance: reordered
}

IpIdHistory::Counter* IpIdHistory::followed(Counters& counters, std::uint16_t id, Instant now) noexcept {
    const auto found = std::find_if(counters.begin(), counters.end(),
                                    [&](const Counter& each) { return each.is_followed_by(id, now); });
    return found == counters.end() ? nullptr : &*found;
}

IpIdHistory::Counter& IpIdHistory::oldest(Counters& counters) noexcept {
    return *std::min_element(counters.begin(), counters.end(), [](const Counter& a, const Counter& b) {
        return a.known != b.known ? b.known : a.turn < b.turn;
    });
}

// Returns false for a counter not heard for a while. Its true value may be anywhere by then, and such counters would
// let any ID pass.
bool IpIdHistory::is_current(const Counter& counter, Instant now) const noexcept {
    return counter.turn == heard_ || now - counter.seen <= kBeside;
}

bool IpIdHistory::judge(std::uint16_t id, Instant now) noexcept {
    ++turn_;
    for (Counter& each : believed_) {
        each.known = each.known && is_current(each, now);
    }
    Counter* counter = followed(believed_, id, now);
    Counter* const doubted = counter == nullptr ? followed(doubted_, id, now) : nullptr;
    const bool first = std::none_of(believed_.begin(), believed_.end(), [](const Counter& each) { return each.known; });
    if (counter == nullptr && doubted == nullptr && !first) {
        oldest(doubted_) = {id, true, now, turn_};
        return false;
    }
    if (doubted != nullptr) {
        *doubted = {};
    }
    counter = counter == nullptr ? &oldest(believed_) : counter;
    *counter = {id, true, now, turn_};
    heard_ = turn_;
    return true;
}

}  // namespace cairn::port
