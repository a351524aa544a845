// Global synchronisation (ScaleRPC 4.2): servers that switch slices at the same times, each for the same group. One
// server is the time server; the others follow it. It reads no clock and does no I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/endian.hpp"
#include "lib/base/time.hpp"

namespace cairn::scalerpc {

struct SliceClockConfig {
    Duration slice = microseconds(100);   // of each group; the same at all servers
    std::uint32_t cohorts = 2;            // groups whose slices come in turn; the same at all servers
    Duration period = milliseconds(100);  // a follower asks the time server once per period
};

struct RawTimeAnswer {
    Be64 held;
    Be64 rest;
    Be64 slot;
};
static_assert(sizeof(RawTimeAnswer) == 24 && alignof(RawTimeAnswer) == 1);

// The time server's answer. It has only spans of time, not the server's clock.
struct TimeAnswer {
    Duration held{};         // from the question's arrival to the answer: DeltaT = T3 - T2
    Duration rest{};         // from the answer to the server's next switch: D in the paper, where the server answers at
                             // a switch
    std::uint64_t slot = 0;  // number of the slot that begins at that switch

    [[nodiscard]] RawTimeAnswer raw() const noexcept {
        return {Be64{static_cast<std::uint64_t>(held.ns)}, Be64{static_cast<std::uint64_t>(rest.ns)}, Be64{slot}};
    }
    // Parses an answer. Returns nothing if there are too few bytes.
    [[nodiscard]] static std::optional<TimeAnswer> parse(std::span<const std::uint8_t> bytes) noexcept {
        RawTimeAnswer raw;
        if (bytes.size() < sizeof(raw)) {
            return std::nullopt;
        }
        std::memcpy(&raw, bytes.data(), sizeof(raw));
        return TimeAnswer{
            {static_cast<std::int64_t>(raw.held.get())}, {static_cast<std::int64_t>(raw.rest.get())}, raw.slot.get()};
    }
};

// Slots are consecutive slices. Slot n belongs to cohort n modulo their number.
class SliceClock {
public:
    struct Slot {
        std::uint64_t number = 0;
        Instant ends{};
    };
    enum class Verdict : std::uint8_t {
        Taken,
        Slow,      // the answer took much longer than others, and it is unknown on which way
        Nonsense,  // impossible spans
    };

    // Makes a clock. Slot 0 begins now.
    SliceClock(const SliceClockConfig& config, Instant now) noexcept : config_(config), next_begins_(now) {
        CAIRN_ASSERT(config.slice > Duration{} && config.cohorts != 0);
    }

    [[nodiscard]] const SliceClockConfig& config() const noexcept { return config_; }
    // Returns the present slot at a time. It ends later than that time.
    [[nodiscard]] Slot slot_at(Instant at) const noexcept {
        const std::int64_t since = (at - next_begins_).ns;
        const std::int64_t whole = since / config_.slice.ns - (since % config_.slice.ns < 0 ? 1 : 0);
        return {next_ + static_cast<std::uint64_t>(whole), next_begins_ + Duration{(whole + 1) * config_.slice.ns}};
    }
    [[nodiscard]] std::uint32_t cohort_of(const Slot& slot) const noexcept {
        return static_cast<std::uint32_t>(slot.number % config_.cohorts);
    }

    // Answers a question as time server. The question came at T2, and now is T3.
    [[nodiscard]] TimeAnswer answer(Instant came, Instant now) const noexcept {
        const Slot slot = slot_at(now);
        return {now - came, slot.ends - now, slot.number + 1};
    }
    // Takes an answer as follower, which asked at T1; now is T4. The answer counts as half of the way. So the next
    // switch is in D - (T4 - T1 - DeltaT) / 2.
    Verdict on_answer(Instant asked, Instant now, const TimeAnswer& answer) noexcept {
        const Duration round = now - asked;
        if (answer.held < Duration{} || answer.held > round || answer.rest < Duration{} ||
            answer.rest > config_.slice) {
            return Verdict::Nonsense;
        }
        const Duration way = round - answer.held;
        if (knows_way_ && way > least_way_ * 2 + kJitter) {
            least_way_ = Duration{least_way_.ns + least_way_.ns / 4 + kJitter.ns};  // the way may be longer for good
            return Verdict::Slow;
        }
        least_way_ = knows_way_ ? std::min(way, least_way_) : way;
        knows_way_ = true;
        next_begins_ = now + Duration{answer.rest.ns - way.ns / 2};
        next_ = answer.slot;
        return Verdict::Taken;
    }

private:
    static constexpr Duration kJitter = microseconds(2);

    const SliceClockConfig config_;
    Instant next_begins_;  // start of slot `next_`
    std::uint64_t next_ = 0;
    bool knows_way_ = false;
    Duration least_way_{};  // both ways, of answers that were taken
};

}  // namespace cairn::scalerpc
