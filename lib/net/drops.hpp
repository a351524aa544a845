// Why a frame is not taken: one list of reason, counter name and what a non-zero value tells the operator.
// Dropping is counted, never logged per frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::net {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_NET_DROPS(X)                                                                                       \
    X(Truncated, "net_truncated", "frames that end inside their headers: a broken or hostile sender")            \
    X(NotForUs, "net_not_for_us", "frames for other stations: a flooding switch, or promiscuous mode")           \
    X(Unsupported, "net_unsupported", "protocols that no one here speaks: ordinary background of a LAN")         \
    X(BadVersion, "net_bad_version", "IP packets whose version is not that of their EtherType")                  \
    X(Options, "net_options", "IP packets with options or extension headers, which are not supported")           \
    X(BadLength, "net_bad_length", "length fields that contradict the frame: damage, or a hostile sender")       \
    X(BadChecksum, "net_bad_checksum", "headers or messages damaged on the way, or a peer that miscounts")       \
    X(Fragment, "net_fragment", "IP fragments: some sender's MTU is larger than the path's")                     \
    X(BadAddress, "net_bad_address", "senders that no one can be: multicast, unspecified, mapped or our own")    \
    X(BadNeighbour, "net_bad_neighbour", "ARP or ND messages that break their rules: hop limit, options, sizes") \
    X(AddressConflict, "net_address_conflict", "another station claims this host's address: find and stop it")   \
    X(TooFrequent, "net_too_frequent", "a neighbour's MAC changed twice in a second: two stations, one address") \
    X(NoBuffer, "net_no_buffer", "answers or questions not sent for want of a buffer")

enum class Drop : std::uint8_t {
#define CAIRN_X(name, counter, text) name,
    CAIRN_NET_DROPS(CAIRN_X)
#undef CAIRN_X
        Count,
};

struct DropText {
    std::string_view counter;
    std::string_view meaning;
};

constexpr std::array<DropText, static_cast<std::size_t>(Drop::Count)> kDropTexts{{
#define CAIRN_X(name, counter, text) {counter, text},
    CAIRN_NET_DROPS(CAIRN_X)
#undef CAIRN_X
}};

// One counter per enumerator of Reason, whose last one is Count.
template <class Reason>
class CountsByReason {
public:
    void count(Reason reason) noexcept { ++counts_[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t of(Reason reason) const noexcept { return counts_[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t total() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t value : counts_) {
            sum += value;
        }
        return sum;
    }

private:
    std::array<std::uint64_t, static_cast<std::size_t>(Reason::Count)> counts_{};
};

}  // namespace cairn::net
