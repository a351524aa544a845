// The place of a datagram in an mbuf, for both directions of EthdevPort's datapath.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "lib/port/port.hpp"

namespace cairn::pmd {

constexpr std::uint16_t kNoQueue = 0xffff;
constexpr std::size_t kEthernetBytes = port::Path::kEthernetBytes;

[[nodiscard]] inline rte_mbuf* mbuf_of(const port::PacketRef& packet) noexcept {
    return static_cast<rte_mbuf*>(packet.cookie);
}

// Returns the size that a received datagram, after `lower` bytes of headers, may grow to if its buffer is used again.
// Returns 0 if it may not be: others read it, too, or its memory lies between frames that the device is receiving.
[[nodiscard]] inline std::uint16_t room_in(const rte_mbuf& frame, std::size_t lower) noexcept {
    const bool is_ours =
        (frame.ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) == 0 && rte_mbuf_refcnt_read(&frame) == 1;
    return static_cast<std::uint16_t>(is_ours ? frame.buf_len - frame.data_off - lower : 0);
}

// Returns true for a multicast address, false for broadcast.
[[nodiscard]] inline bool is_group_frame(const std::uint8_t* frame) noexcept {
    return (frame[0] & 1U) != 0 && frame[0] != 0xff;
}

[[nodiscard]] inline std::uint16_t get16(const std::uint8_t* at) noexcept {
    return static_cast<std::uint16_t>((at[0] << 8U) | at[1]);
}
[[nodiscard]] inline std::uint32_t get32(const std::uint8_t* at) noexcept {
    return (std::uint32_t{get16(at)} << 16U) | get16(at + 2);
}

}  // namespace cairn::pmd
