// The numbers in the connection manager's messages, with their width on the wire (IBTA vol. 1, 12.7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "lib/wire/mad.hpp"

namespace cairn::wire {

using CommId = Number<struct CommIdTag, std::uint32_t>;            // names a connection at one end
using ServiceId = Number<struct ServiceIdTag, std::uint64_t>;      // names a listener
using CmTimeout = Number<struct CmTimeoutTag, std::uint8_t, 31>;   // 4.096 us * 2^value
using RetryCount = Number<struct RetryCountTag, std::uint8_t, 7>;  // of a queue pair; 7 RNR retries: without end
using CmRetries = Number<struct CmRetriesTag, std::uint8_t, 15>;   // of the connection manager's messages
using PathMtu = Number<struct PathMtuTag, std::uint8_t, 15>;       // a code; see bytes_of
using FlowLabel = Number<struct FlowLabelTag, std::uint32_t, 0xfffffU>;
using ServiceLevel = Number<struct ServiceLevelTag, std::uint8_t, 15>;
using PacketRate = Number<struct PacketRateTag, std::uint8_t, 63>;
using Eecn = Number<struct EecnTag, std::uint32_t, 0xffffffU>;  // of reliable datagrams; also the QPN of an XRC target
using Gid = std::array<std::uint8_t, 16>;                       // RoCEv2: the IP address, IPv4 as ::ffff:a.b.c.d
template <std::size_t kBytes>
using PrivateData = std::array<std::uint8_t, kBytes>;  // always sent whole; unused bytes are zero

// kWidth bits of an octet. kFirst counts from the most significant bit, as the tables of the specification do.
template <unsigned kFirst, unsigned kWidth>
struct Bits {
    static_assert(kFirst + kWidth <= 8);
    static constexpr unsigned kShift = 8 - kFirst - kWidth;
    static constexpr unsigned kMask = (1U << kWidth) - 1;

    [[nodiscard]] static constexpr std::uint8_t get(std::uint8_t octet) noexcept {
        return static_cast<std::uint8_t>((unsigned{octet} >> kShift) & kMask);
    }
    [[nodiscard]] static constexpr std::uint8_t put(std::uint8_t value) noexcept {
        return static_cast<std::uint8_t>((unsigned{value} & kMask) << kShift);
    }
};
static_assert(Bits<5, 2>::get(0x06) == 3 && Bits<0, 5>::put(0x13) == 0x98);

[[nodiscard]] constexpr Duration duration_of(CmTimeout timeout) noexcept {
    return nanoseconds(4096) * (std::int64_t{1} << timeout.value);
}

// Returns 0 for a reserved code (1 = 256 ... 5 = 4096).
[[nodiscard]] constexpr std::uint32_t bytes_of(PathMtu mtu) noexcept {
    return mtu.value >= 1 && mtu.value <= 5 ? 128U << mtu.value : 0U;
}
// Returns the code. `bytes` is 256, 512, 1024, 2048 or 4096.
[[nodiscard]] constexpr PathMtu path_mtu_of(std::uint32_t bytes) noexcept {
    std::uint8_t code = 1;
    while (bytes_of(PathMtu{code}) != bytes && code < 5) {
        ++code;
    }
    return PathMtu{code};
}
static_assert(bytes_of(path_mtu_of(256)) == 256 && bytes_of(path_mtu_of(4096)) == 4096 && bytes_of(PathMtu{6}) == 0);

// The reasons of a REJ (12.6.7.2) that are used here. Others exist and may come.
enum class RejectReason : std::uint16_t {
    NoQueuePair = 1,
    NoResources = 3,
    Timeout = 4,
    Unsupported = 5,
    InvalidCommId = 6,
    InvalidCommInstance = 7,
    InvalidServiceId = 8,
    InvalidTransport = 9,
    StaleConnection = 10,
    InvalidGid = 12,
    InvalidPathMtu = 26,
    InsufficientResponderResources = 27,
    Consumer = 28,
    InvalidRnrRetry = 29,
    DuplicateCommId = 30,
};

constexpr std::size_t kMessageBytes = kMadBytes - MadHeader::kBytes;
constexpr std::size_t kInfoBytes = 72;  // for additional information in refusals
using AdditionalInfo = std::array<std::uint8_t, kInfoBytes>;

// The names that the sender and the receiver have for the connection. Each of these messages begins with them.
struct CommIds {
    CommId local{};  // the sender's
    CommId remote{};

    friend bool operator==(const CommIds&, const CommIds&) noexcept = default;
};
struct RawCommIds {
    Be32 local;
    Be32 remote;

    [[nodiscard]] CommIds get() const noexcept { return {CommId{local.get()}, CommId{remote.get()}}; }
    void set(const CommIds& ids) noexcept {
        local.set(ids.local.value);
        remote.set(ids.remote.value);
    }
};

}  // namespace cairn::wire
