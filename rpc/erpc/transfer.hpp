// Messages of several packets: how they are cut, which packets arrived, and what either side remembers of one.
//
// A call's packets have one common order, as in eRPC: the client sends request packets 0 ... n-1 and then a request
// for response (RFR) n ... n+m-2 for each response packet but the first. Number i is answered by a credit return
// (i < n-1) or by response packet i-(n-1). All of it is driven by the client.
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
constexpr std::uint32_t kPacketNumberMask = (1U << 14U) - 1;  // what the wire carries of a number
static_assert(kMaxCredits <= kWindowPackets);

[[nodiscard]] constexpr std::uint32_t packets_of(std::uint32_t message_bytes, std::uint32_t packet_bytes) noexcept {
    return message_bytes <= packet_bytes ? 1 : (message_bytes + packet_bytes - 1) / packet_bytes;
}

// Of packet `index`, which the message has.
[[nodiscard]] constexpr std::uint32_t bytes_of_packet(std::uint32_t message_bytes, std::uint32_t packet_bytes,
                                                      std::uint32_t index) noexcept {
    const std::uint32_t before = index * packet_bytes;
    return message_bytes - before < packet_bytes ? message_bytes - before : packet_bytes;
}

// The number that has these 14 low bits and is nearest to `near`.
[[nodiscard]] constexpr std::uint32_t resolve_number(std::uint16_t wire, std::uint32_t near) noexcept {
    const std::uint32_t ahead = (wire - near) & kPacketNumberMask;
    const std::uint32_t up = near + ahead;
    return ahead > kPacketNumberMask / 2 && up > kPacketNumberMask ? up - kPacketNumberMask - 1 : up;
}

// Which numbers of a run have been seen: all below next(), and some of the kWindowPackets from there on. Each number
// ahead can carry a mark besides.
class PacketWindow {
public:
    enum class Seen : std::uint8_t { New, Known, Outside };

    [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
    [[nodiscard]] bool has(std::uint32_t number) const noexcept {
        return number < next_ || (number - next_ < kWindowPackets && bit(seen_, number - next_));
    }
    // mutants: erpc-packet-window-see
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
    // Behind the highest number seen; next() if none is ahead.
    [[nodiscard]] std::uint32_t end() const noexcept {
        const auto high = static_cast<std::uint64_t>(seen_ >> 64U);
        const auto low = static_cast<std::uint64_t>(seen_);
        return next_ + static_cast<std::uint32_t>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
    }
    // How many of [next(), limit) have been seen.
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

    // Those ahead, bit i for next() + i, as two words.
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

// The client's side of a call with several packets either way. Lives in a table of the endpoint.
struct ClientTransfer {
    PacketWindow answered;              // of the common order; marked: sent again since the last timeout
    std::uint32_t sent = 0;             // numbers below it were sent
    std::uint32_t sent_most = 0;        // and below this one at some time: a timeout takes `sent` back
    std::uint32_t ambiguous_below = 0;  // sent more than once: no sample of the round trip (Karn)
    std::uint32_t request_packets = 1;
    std::uint32_t response_packets = 0;  // 0: not known yet
    std::uint32_t response_bytes = 0;
    rpc::MsgBuffer response{};   // where it is put together
    bool owns_response = false;  // taken from the pool for the call
    std::array<Instant, kWindowPackets> sent_at{};

    // Numbers that may be sent so far.
    [[nodiscard]] std::uint32_t known_numbers() const noexcept {
        return response_packets == 0 ? request_packets : request_packets + response_packets - 1;
    }
    // Sent and not answered: each holds a credit.
    [[nodiscard]] std::uint32_t outstanding() const noexcept {
        return sent <= answered.next() ? 0 : sent - answered.next() - answered.seen_below(sent);
    }
    [[nodiscard]] bool complete() const noexcept { return response_packets != 0 && answered.next() == known_numbers(); }
};

// One packet of an answer.
struct AnswerPacket {
    std::uint32_t index;
    bool again;  // some packet of the answer left before
};

// The server's side of a request that arrives in several packets.
struct ServerTransfer {
    PacketWindow received;
    std::uint32_t packets = 0;
    std::uint32_t newest = 0;  // arrived last
    rpc::MsgBuffer request{};
    Instant begun{};
    Instant heard{};          // its newest packet
    bool credit_due = false;  // a credit return leaves at the end of the burst
    std::uint8_t source = 0;  // its host's place in the shares
};

}  // namespace cairn::erpc
