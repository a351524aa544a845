// Messages of several packets: how they are cut, which packets arrived, and the state of a message at either side.
//
// The packets of a call are numbered in one order, as in the eRPC paper. The client sends request packets 0 ... n-1.
// Then it sends a request for response (RFR) n ... n+m-2 for each response packet but the first. The server answers
// number i by a credit return if i < n-1, else by response packet i-(n-1). It sends nothing else.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

constexpr std::uint32_t kWindowPackets = 128;  // how far the newest packet may be ahead of the oldest missing one
constexpr std::uint32_t kPacketNumberMask = (1U << 14U) - 1;  // the bits of a number that the wire carries
static_assert(kMaxCredits <= kWindowPackets);

[[nodiscard]] constexpr std::uint32_t packets_of(std::uint32_t message_bytes, std::uint32_t packet_bytes) noexcept {
    return message_bytes <= packet_bytes ? 1 : (message_bytes + packet_bytes - 1) / packet_bytes;
}

// Returns the payload bytes of packet `index`, which the message has.
[[nodiscard]] constexpr std::uint32_t bytes_of_packet(std::uint32_t message_bytes, std::uint32_t packet_bytes,
                                                      std::uint32_t index) noexcept {
    const std::uint32_t before = index * packet_bytes;
    return message_bytes - before < packet_bytes ? message_bytes - before : packet_bytes;
}

// Returns the number nearest to `near` whose 14 low bits are `wire`.
[[nodiscard]] constexpr std::uint32_t resolve_number(std::uint16_t wire, std::uint32_t near) noexcept {
    const std::uint32_t ahead = (wire - near) & kPacketNumberMask;
    const std::uint32_t up = near + ahead;
    return ahead > kPacketNumberMask / 2 && up > kPacketNumberMask ? up - kPacketNumberMask - 1 : up;
}

// Which packet numbers have been seen: all below next(), and some of the kWindowPackets numbers from next() on. Each
// number from next() on can also carry a mark.
class PacketWindow {
public:
    enum class Seen : std::uint8_t { New, Known, Outside };

    [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
    [[nodiscard]] bool has(std::uint32_t number) const noexcept {
        return number < next_ || (number - next_ < kWindowPackets && bit(seen_, number - next_));
    }
    [[nodiscard]] Seen see(std::uint32_t number) noexcept {
        if (has(number)) {
            return Seen::Known;
        }
        if (number - next_ >= kWindowPackets) {
            return Seen::Outside;
        }
        seen_ |= Bits{1} << (number - next_);
        while ((seen_ & 1U) != 0) {
            seen_ >>= 1U;
            marked_ >>= 1U;
            ++next_;
        }
        return Seen::New;
    }
    // Returns the number after the highest number seen, which is next() if none is ahead.
    [[nodiscard]] std::uint32_t end() const noexcept {
        const auto high = static_cast<std::uint64_t>(seen_ >> 64U);
        const auto low = static_cast<std::uint64_t>(seen_);
        return next_ + static_cast<std::uint32_t>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
    }
    // Returns how many numbers in [next(), limit) have been seen.
    [[nodiscard]] std::uint32_t seen_below(std::uint32_t limit) const noexcept {
        if (limit <= next_) {
            return 0;
        }
        const std::uint32_t span = limit - next_;
        const Bits bits = span >= kWindowPackets ? seen_ : seen_ & ((Bits{1} << span) - 1U);
        return static_cast<std::uint32_t>(std::popcount(static_cast<std::uint64_t>(bits)) +
                                          std::popcount(static_cast<std::uint64_t>(bits >> 64U)));
    }
    [[nodiscard]] bool marked(std::uint32_t number) const noexcept {
        return number >= next_ && number - next_ < kWindowPackets && bit(marked_, number - next_);
    }
    void mark(std::uint32_t number) noexcept {
        if (number >= next_ && number - next_ < kWindowPackets) {
            marked_ |= Bits{1} << (number - next_);
        }
    }
    void clear_marks() noexcept { marked_ = 0; }

    // Returns the numbers seen ahead as two words, bit i for next() + i.
    [[nodiscard]] std::array<std::uint64_t, 2> ahead() const noexcept {
        return {static_cast<std::uint64_t>(seen_), static_cast<std::uint64_t>(seen_ >> 64U)};
    }

private:
    __extension__ using Bits = unsigned __int128;
    [[nodiscard]] static bool bit(Bits bits, std::uint32_t index) noexcept { return ((bits >> index) & 1U) != 0; }

    std::uint32_t next_ = 0;
    Bits seen_ = 0;
    Bits marked_ = 0;
};

// The client's side of a call with several packets either way. It lives in a table of the endpoint.
struct ClientTransfer {
    Instant first_sent{};
    PacketWindow answered;              // numbers that were answered; a mark: sent again since the last timeout
    std::uint32_t sent = 0;             // numbers below it were sent; a timeout moves it back
    std::uint32_t sent_most = 0;        // the highest value that `sent` had
    std::uint32_t ambiguous_below = 0;  // numbers below it may have been sent twice: no round trip samples (Karn)
    std::uint32_t request_packets = 1;
    std::uint32_t response_packets = 0;  // 0: not known yet
    std::uint32_t response_bytes = 0;
    rpc::MsgBuffer response{};   // the response is assembled here
    bool owns_response = false;  // `response` was taken from the pool for this call
    std::array<Instant, kWindowPackets> sent_at{};

    // Returns how many numbers the call has, as far as the client knows yet.
    [[nodiscard]] std::uint32_t known_numbers() const noexcept {
        return response_packets == 0 ? request_packets : request_packets + response_packets - 1;
    }
    // Returns how many packets were sent and not answered. Each holds a credit.
    [[nodiscard]] std::uint32_t outstanding() const noexcept {
        return sent <= answered.next() ? 0 : sent - answered.next() - answered.seen_below(sent);
    }
    [[nodiscard]] bool complete() const noexcept { return response_packets != 0 && answered.next() == known_numbers(); }
};

// One packet of an answer.
struct AnswerPacket {
    std::uint32_t index;
    bool again;  // a packet of the answer was sent before
};

// The server's side of a request that arrives in several packets.
struct ServerTransfer {
    PacketWindow received;
    std::uint32_t packets = 0;
    std::uint32_t newest = 0;  // index of the packet that arrived last
    rpc::MsgBuffer request{};
    Instant begun{};
    Instant heard{};          // when the last packet arrived
    bool credit_due = false;  // a credit return leaves at the end of the burst
    std::uint8_t source = 0;  // the share of the request's host
};

}  // namespace cairn::erpc
