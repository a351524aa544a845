// ACK extended transport header: 4 bytes, the contents of an acknowledgement (IBTA vol. 1, 9.3.5).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "lib/wire/drops.hpp"

namespace cairn::wire {

struct RawAeth {
    std::uint8_t syndrome;  // 000ccccc ACK, 001ttttt RNR NAK, 011nnnnn NAK; other values are reserved
    Be24 msn;
};
static_assert(sizeof(RawAeth) == 4 && alignof(RawAeth) == 1);

// The three kinds of syndrome.
using AckCredits = Number<struct AckCreditsTag, std::uint8_t, 0x1fU>;  // as encoded; 31: no end-to-end flow control
using RnrTimer = Number<struct RnrTimerTag, std::uint8_t, 0x1fU>;      // as encoded
enum class NakCode : std::uint8_t {
    PsnSequence = 0,
    InvalidRequest = 1,
    RemoteAccess = 2,
    RemoteOperational = 3,
    InvalidRdRequest = 4,
};

struct Aeth {
    using Raw = RawAeth;
    using Syndrome = std::variant<AckCredits, RnrTimer, NakCode>;
    static constexpr std::size_t kBytes = sizeof(Raw);

    Syndrome syndrome{};
    Msn msn{};

    // Returns BadSyndrome for a reserved kind or NAK code, and leaves `into` unchanged.
    [[nodiscard]] static std::optional<Drop> read(const Raw& raw, Aeth& into) noexcept {
        const auto code = static_cast<std::uint8_t>(raw.syndrome & kCodeMask);
        switch (raw.syndrome & ~kCodeMask) {
            case kAck:
                into.syndrome.emplace<AckCredits>(code);
                break;
            case kRnrNak:
                into.syndrome.emplace<RnrTimer>(code);
                break;
            case kNak:
                if (code > static_cast<std::uint8_t>(NakCode::InvalidRdRequest)) {
                    return Drop::BadSyndrome;
                }
                into.syndrome.emplace<NakCode>(static_cast<NakCode>(code));
                break;
            default:
                return Drop::BadSyndrome;
        }
        into.msn = Msn{raw.msn.get()};
        return std::nullopt;
    }
    void emit(Raw& raw) const noexcept { raw = {syndrome_octet(), Be24{msn.value}}; }

    friend bool operator==(const Aeth&, const Aeth&) noexcept = default;

private:
    static constexpr unsigned kCodeMask = 0x1f;
    static constexpr unsigned kAck = 0x00;
    static constexpr unsigned kRnrNak = 0x20;
    static constexpr unsigned kNak = 0x60;

    [[nodiscard]] std::uint8_t syndrome_octet() const noexcept {
        if (const auto* credits = std::get_if<AckCredits>(&syndrome)) {
            return static_cast<std::uint8_t>(kAck | credits->value);
        }
        if (const auto* timer = std::get_if<RnrTimer>(&syndrome)) {
            return static_cast<std::uint8_t>(kRnrNak | timer->value);
        }
        return static_cast<std::uint8_t>(kNak | static_cast<unsigned>(*std::get_if<NakCode>(&syndrome)));
    }
};

}  // namespace cairn::wire
