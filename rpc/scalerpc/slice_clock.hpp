// When slices end on servers that switch at the same time, and whose slices they are: global synchronisation (ScaleRPC
// 4.2). One server is the time server; the others follow it. No clock of its own and no I/O.
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
    Duration slice = microseconds(100);   // of each group; all servers have the same
    std::uint32_t cohorts = 2;            // groups whose slices come in turn; all servers have the same
    Duration period = milliseconds(100);  // a follower asks the time server once in it
};

struct RawTimeAnswer {
    Be64 held;
    Be64 rest;
    Be64 slot;
};
static_assert(sizeof(RawTimeAnswer) == 24 && alignof(RawTimeAnswer) == 1);

// What the time server answers. Its clock is not told, only spans of time.
struct TimeAnswer {
    Duration held{};         // from the question's arrival to the answer: DeltaT = T3 - T2
    Duration rest{};         // from the answer to the server's next switch: D in the paper, which answers at a switch
    std::uint64_t slot = 0;  // that begins at that switch

    [[nodiscard]] RawTimeAnswer raw() const noexcept {
        return {Be64{static_cast<std::uint64_t>(held.ns)}, Be64{static_cast<std::uint64_t>(rest.ns)}, Be64{slot}};
    }
    // Returns nothing if there are too few bytes.
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

// Slots are slices one behind the other. Slot n is that of cohort n modulo their number.
class SliceClock {
public:
    struct Slot {
        std::uint64_t number = 0;
        Instant ends{};
    };
    enum class Verdict : std::uint8_t {
        Taken,
        Slow,      // the answer took much longer than others: nobody knows on which way
        Nonsense,  // spans that cannot be
    };

    // Slot 0 begins now.
    SliceClock(const SliceClockConfig& config, Instant now) noexcept : config_(config), next_begins_(now) {
        CAIRN_ASSERT(config.slice > Duration{} && config.cohorts != 0);
    }

    [[nodiscard]] const SliceClockConfig& config() const noexcept { return config_; }
    // The slot that goes on at a time. It ends later than that.
    // mutants: scalerpc-slice-clock-slot-at
    [[nodiscard]] Slot slot_at(Instant at) const noexcept {
        const std::int64_t since = (at - next_begins_).ns;
        const std::int64_t whole = since / config_.slice.ns - (since % config_.slice.ns < 0 ? 1 : 0);
        return {next_ + static_cast<std::uint64_t>(whole), next_begins_ + Duration{(whole + 1) * config_.slice.ns}};
    }
    [[nodiscard]] std::uint32_t cohort_of(const Slot& slot) const noexcept {
        return static_cast<std::uint32_t>(slot.number % config_.cohorts);
    }

    // The time server answers a question that came at T2, now (T3).
    [[nodiscard]] TimeAnswer answer(Instant came, Instant now) const noexcept {
        const Slot slot = slot_at(now);
        return {now - came, slot.ends - now, slot.number + 1};
    }
    // A follower asked at T1 and has the answer now (T4). The answer is taken to have needed half of the way, so the
    // next switch is in D - (T4 - T1 - DeltaT) / 2.
    // mutants: scalerpc-slice-clock-on-answer
    Verdict on_answer(Instant asked, Instant now, const TimeAnswer& answer) noexcept {
        const Duration round = now - asked;
        if (answer.held < Duration{} || answer.held > round || answer.rest < Duration{} ||
            answer.rest > config_.slice) {
            return Verdict::Nonsense;
        }
        const Duration way = round - answer.held;
        if (knows_way_ && way > least_way_ * 2 + kJitter) {
            least_way_ = Duration{least_way_.ns + least_way_.ns / 4 + kJitter.ns};  // the way may have grown for good
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
    Instant next_begins_;  // a slot begins, of this number
    std::uint64_t next_ = 0;
    bool knows_way_ = false;
    Duration least_way_{};  // there and back, of answers that were taken
};

}  // namespace cairn::scalerpc
