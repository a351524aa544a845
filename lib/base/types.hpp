// The numbers of the domain as types of their own: a Qpn is neither a Psn nor a Qkey.
#pragma once

#include <compare>
#include <cstdint>

namespace cairn {

// A number with a name. `kMask` has the bits that the field has on the wire.
template <class Tag, class Rep, Rep kMask = static_cast<Rep>(~Rep{0})>
struct Number {
    Rep value = 0;

    constexpr Number() noexcept = default;
    constexpr explicit Number(Rep raw) noexcept : value(static_cast<Rep>(raw & kMask)) {}
    friend constexpr auto operator<=>(const Number&, const Number&) noexcept = default;
};

using Qpn = Number<struct QpnTag, std::uint32_t, 0xffffffU>;    // queue pair number, 24 bits
using Qkey = Number<struct QkeyTag, std::uint32_t>;             // datagram key, 32 bits
using Pkey = Number<struct PkeyTag, std::uint16_t>;             // partition key, bit 15 = full member
using Rkey = Number<struct RkeyTag, std::uint32_t>;             // remote key of a memory region
using Lkey = Number<struct LkeyTag, std::uint32_t>;             // local key of a memory region
using Msn = Number<struct MsnTag, std::uint32_t, 0xffffffU>;    // message sequence number, 24 bits
using Srqn = Number<struct SrqnTag, std::uint32_t, 0xffffffU>;  // shared receive queue number, 24 bits

// Names a session of an RPC endpoint. The lower half is the session's number there. The upper half counts the earlier
// sessions of that number. So the name of an ended session names no other one, unless it is kept while 65,536 sessions
// follow. Only the number travels on the wire.
struct SessionId : Number<struct SessionIdTag, std::uint32_t> {
    using Number::Number;

    [[nodiscard]] constexpr std::uint16_t number() const noexcept { return static_cast<std::uint16_t>(value); }
    // Names the next session of this number.
    [[nodiscard]] constexpr SessionId successor() const noexcept { return SessionId{value + (1U << 16U)}; }
};

// Packet sequence number: 24 bits, ordered by distance on the circle, never by magnitude (IBTA vol. 1, 9.7.1).
class Psn {
public:
    static constexpr std::uint32_t kMask = 0xffffffU;

    constexpr Psn() noexcept = default;
    constexpr explicit Psn(std::uint32_t raw) noexcept : value_(raw & kMask) {}

    [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
    [[nodiscard]] constexpr Psn plus(std::uint32_t packets) const noexcept { return Psn{value_ + packets}; }
    [[nodiscard]] constexpr Psn next() const noexcept { return plus(1); }

    // Returns the number of packets from `base` to this one, in [-2^23, 2^23). It is negative if this one is older.
    [[nodiscard]] constexpr std::int32_t since(Psn base) const noexcept {
        return static_cast<std::int32_t>((value_ - base.value_) << 8U) >> 8;  // the sign is bit 23's
    }

    friend constexpr bool operator==(const Psn&, const Psn&) noexcept = default;

private:
    std::uint32_t value_ = 0;
};

static_assert(Psn{0xffffffU}.next() == Psn{0});
static_assert(Psn{1}.since(Psn{0xfffffeU}) == 3);
static_assert(Psn{0xfffffeU}.since(Psn{1}) == -3);

}  // namespace cairn
