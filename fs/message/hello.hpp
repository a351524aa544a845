// How a client and a daemon of one machine meet: packets of a unix socket (SOCK_SEQPACKET). The socket says who the
// client is (SO_PEERCRED, SO_PEERGROUPS), and lives as long as the client does.
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
constexpr std::size_t kMostHelloBytes = 32768;  // a Welcome: the table has 16400, all shards 8192

// The client begins.
struct Hello {
    std::uint64_t client = 0;  // 0: a new one. Otherwise one that lost its daemon, which gave it this number
};

// The daemon answers: what a client needs to know of the file system.
struct Welcome {
    std::uint64_t client = 0;
    FileId root{};
    std::uint32_t chunk_bytes = 0;
    Spread spread = Spread::Even;
    std::uint32_t daemons = 1;  // that the file system was made with
    std::uint64_t placement_key = 0;
    std::vector<std::uint16_t> local{};  // shards of this daemon, in the order of their channels
    ChannelShape shape{};
    std::optional<SlotTable> table{};  // there (asserted)

    // The placement's key is made of one word.
    [[nodiscard]] SipKey placement_words() const noexcept { return {placement_key, ~placement_key}; }
};

// Then the client asks for a channel to a shard of this daemon, as often as it likes. The daemon answers with two
// descriptors beside the bytes (SCM_RIGHTS): the segment, and the shard's doorbell.
struct ChannelRequest {
    std::uint16_t shard = 0;
};

// Or it asks, once, for memory for buffers of its own, which all shards of this daemon see: what it reads to and writes
// from there is copied by nobody. The daemon answers how much there is, with the memory's descriptor.
struct BuffersRequest {
    static constexpr std::uint64_t kMost = std::uint64_t{1} << 31U;

    std::uint64_t bytes = 0;  // of the answer: whole pages, at most kMost
};

// Instead of an answer: what is wrong, and the remedy. The daemon hangs up behind it.
struct Refusal {
    std::string text{};
};

// Anybody may ask for the daemon's counters instead of saying Hello. The daemon answers, and hangs up behind it.
struct CountersRequest {};

// A line for each counter that is not zero: its name, its value, what it means. Whole lines, as many as fit.
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

// Each returns nothing if these bytes are no such message of this version.
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<Welcome> parse_welcome(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<ChannelRequest> parse_channel_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<BuffersRequest> parse_buffers_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<Refusal> parse_refusal(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<CountersRequest> parse_counters_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<CountersAnswer> parse_counters_answer(std::span<const std::uint8_t> bytes);

}  // namespace cairn::fs
