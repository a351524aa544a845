// The two times of a reliable connection that are encoded in five bits.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/wire/aeth.hpp"

namespace cairn::roce::rc {

// Returns how long a requester waits for an acknowledgement: 4.096 us * 2^code, for ever with code 0. `code` is in [0,
// 31] (IBTA vol. 1, 9.7.6.1.3).
[[nodiscard]] constexpr Duration ack_timeout(std::uint8_t code) noexcept {
    return {code == 0 ? Instant::never().ns : std::int64_t{4096} << (code & 0x1fU)};
}

// The time for which a receiver that is not ready puts its peer off (IBTA vol. 1, 9.7.5.2.8, table of RNR NAK timer
// values).
constexpr std::array<std::int32_t, 32> kRnrTimersUs{
    655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,     320,
    480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240,  15'360,
    20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520,
};
[[nodiscard]] constexpr Duration rnr_delay(wire::RnrTimer timer) noexcept {
    return microseconds(kRnrTimersUs[timer.value]);
}

static_assert(ack_timeout(14).ns == 67'108'864);
static_assert(rnr_delay(wire::RnrTimer{26}) == microseconds(81'920));

}  // namespace cairn::roce::rc
