// The meeting of a client and a daemon on one machine: packets of a unix socket (SOCK_SEQPACKET). The socket identifies
// the client's user (SO_PEERCRED, SO_PEERGROUPS). It lives as long as the client does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/message/fields.hpp"
#include "fs/placement/slot_table.hpp"

namespace cairn::fs {

constexpr std::uint32_t kHelloMagic = 0x73664363;  // "cCfs"
constexpr std::uint16_t kHelloVersion = 1;
constexpr std::size_t kMostHelloBytes = 32768;  // for a Welcome: the table has 16400, all shards 8192

// The client's first message.
struct Hello {
    std::uint64_t client = 0;  // 0 for a new client; otherwise the number from an earlier daemon
};

// The daemon's answer: the facts of the file system that a client needs.
struct Welcome {
    std::uint64_t client = 0;
    FileId root{};
    std::uint32_t chunk_bytes = 0;
    Spread spread = Spread::Even;
    std::uint32_t daemons = 1;  // number when the file system was made
    std::uint64_t placement_key = 0;
    std::vector<std::uint16_t> local{};  // shards of this daemon, in the order of their channels
    ChannelShape shape{};
    std::optional<SlotTable> table{};  // always set (asserted)

    // Returns the placement's key, which is made of one word.
    [[nodiscard]] SipKey placement_words() const noexcept { return {placement_key, ~placement_key}; }
};

// The client's request for a channel to a shard of this daemon, as often as it likes. The daemon answers with two
// descriptors (SCM_RIGHTS): the segment, and the shard's doorbell.
struct ChannelRequest {
    std::uint16_t shard = 0;
};

// The client's request, once, for memory for its own buffers. All shards of this daemon see the memory, so data in it
// are not copied. The daemon answers with the size and the memory's descriptor.
struct BuffersRequest {
    static constexpr std::uint64_t kMost = std::uint64_t{1} << 31U;

    std::uint64_t bytes = 0;  // in the answer: whole pages, at most kMost
};

// An answer that says what is wrong, and the remedy. The daemon hangs up after it.
struct Refusal {
    std::string text{};
};

// A request for the daemon's counters, instead of a Hello. Any user may send it. The daemon answers, and then hangs up.
struct CountersRequest {};

// A line for each counter that is not zero: its name, its value, its meaning. Whole lines, as many as fit.
struct CountersAnswer {
    std::string text{};
};

[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Hello& hello);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Welcome& welcome);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const ChannelRequest& request);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const BuffersRequest& request);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Refusal& refusal);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const CountersRequest& request);
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const CountersAnswer& answer);

// Parse messages. Each returns nothing if these bytes are no such message of this version.
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<Welcome> parse_welcome(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<ChannelRequest> parse_channel_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<BuffersRequest> parse_buffers_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<Refusal> parse_refusal(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<CountersRequest> parse_counters_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<CountersAnswer> parse_counters_answer(std::span<const std::uint8_t> bytes);

}  // namespace cairn::fs
