// LAP asks for another alternate path. APR answers it; here it always refuses (IBTA vol. 1, 12.8.1, 12.8.2).
#pragma once

#include "lib/wire/cm_types.hpp"

namespace cairn::wire {

struct RawLap {
    RawCommIds ids;
    std::array<std::uint8_t, 224> rest;
};
static_assert(sizeof(RawLap) == kMessageBytes && alignof(RawLap) == 1);

// Asks for another alternate path. The proposed path is not read, since it is refused.
struct Lap {
    using Raw = RawLap;
    static constexpr std::uint16_t kAttribute = 0x0019;

    CommIds ids{};

    [[nodiscard]] static ParsedMad<Lap> parse(const Raw& raw) noexcept { return Lap{raw.ids.get()}; }
    void emit(Raw& raw) const noexcept {
        raw = {};
        raw.ids.set(ids);
    }

    friend bool operator==(const Lap&, const Lap&) noexcept = default;
};

enum class AlternatePathStatus : std::uint8_t { Accepted = 0, InvalidCommId = 1, NotSupported = 2 };  // and more

struct RawApr {
    RawCommIds ids;
    std::uint8_t info_length;
    std::uint8_t status;
    std::array<std::uint8_t, 222> rest;
};
static_assert(sizeof(RawApr) == kMessageBytes && alignof(RawApr) == 1);

// The answer to a LAP. Ours contains only the reason for the refusal.
struct Apr {
    using Raw = RawApr;
    static constexpr std::uint16_t kAttribute = 0x001a;

    CommIds ids{};
    AlternatePathStatus status = AlternatePathStatus::NotSupported;

    [[nodiscard]] static ParsedMad<Apr> parse(const Raw& raw) noexcept {
        return Apr{raw.ids.get(), static_cast<AlternatePathStatus>(raw.status)};
    }
    void emit(Raw& raw) const noexcept {
        raw = {};
        raw.ids.set(ids);
        raw.status = static_cast<std::uint8_t>(status);
    }

    friend bool operator==(const Apr&, const Apr&) noexcept = default;
};

}  // namespace cairn::wire
