#include "lib/net/checksum.hpp"

namespace cairn::net {

void ChecksumSum::add(std::span<const std::uint8_t> bytes) noexcept {
    std::size_t i = 0;
    for (; i + 1 < bytes.size(); i += 2) {
        sum_ += (std::uint32_t{bytes[i]} << 8U) | bytes[i + 1];
    }
    if (i < bytes.size()) {
        sum_ += std::uint32_t{bytes[i]} << 8U;
    }
}

void ChecksumSum::add_pseudo_header(const IpAddress& source, const IpAddress& destination, std::uint8_t protocol,
                                    std::uint32_t upper_bytes) noexcept {
    const std::size_t from = source.is_v4() ? 12 : 0;  // an IPv4 address is the last part of the mapped form
    add(std::span(source.octets()).subspan(from));
    add(std::span(destination.octets()).subspan(from));
    sum_ += protocol;
    sum_ += upper_bytes;  // the 32 bits are congruent to the sum of their halves
}

std::uint16_t ChecksumSum::folded() const noexcept {
    std::uint64_t sum = sum_;
    while ((sum >> 16U) != 0) {
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(sum);
}

}  // namespace cairn::net
