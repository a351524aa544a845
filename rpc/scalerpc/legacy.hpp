// Request types that take longer than a slice (ScaleRPC 3.5). While they do, a thread executes them.
#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>

#include "lib/base/time.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::scalerpc {

// Decides which handler executes a type. `Entry` is a request type's handler and room.
template <class Entry>
class Legacy {
public:
    static constexpr int kEnough = 4;                    // this many long ones of the last eight: threads get the type
    static constexpr Duration kTrialAfter = seconds(1);  // then its usual handler gets it back, on trial

    void set(std::uint8_t type, rpc::BackgroundHandler handler, void* context,
             std::uint32_t response_bytes_max) noexcept {
        entries_[type] = {nullptr, handler, context, response_bytes_max};
        given_[type] = handler != nullptr;
        long_[type] = long_[type] && given_[type];
    }
    // Notes that the usual handler of a watched type has executed a request, for longer than a slice or not. Returns
    // true if threads get the type from now on.
    bool on_executed(std::uint8_t type, bool was_long, Instant now) noexcept {
        std::uint8_t& last = last_[type];
        last = static_cast<std::uint8_t>(std::uint32_t{last} << 1U | (was_long ? 1U : 0U));
        long_[type] = was_long && std::popcount(last) >= kEnough;
        trial_[type] = now + kTrialAfter;
        return long_[type];
    }
    // True if the type's handlers must be measured: threads do not have the type, but may get it.
    [[nodiscard]] bool watches(std::uint8_t type) const noexcept { return given_[type] && !long_[type]; }
    // Returns the handler that executes the type: `usual`, unless threads have the type. On trial a single long request
    // gives the type to threads again.
    [[nodiscard]] const Entry& of(std::uint8_t type, const Entry& usual, Instant now) noexcept {
        if (!long_[type]) [[likely]] {
            return usual;
        }
        if (now >= trial_[type]) {
            long_[type] = false;
            last_[type] = kOnTrial;
            return usual;
        }
        return entries_[type];
    }
    // Returns the handler for a thread. There may be none.
    [[nodiscard]] const Entry& on_thread(std::uint8_t type) const noexcept { return entries_[type]; }

private:
    static constexpr std::uint8_t kOnTrial = 0x07;  // as if these of the last requests were long

    std::array<Entry, rpc::kRequestTypes> entries_{};
    std::bitset<rpc::kRequestTypes> given_{};
    std::bitset<rpc::kRequestTypes> long_{};
    std::array<std::uint8_t, rpc::kRequestTypes> last_{};  // the last requests, a bit each: it was long
    std::array<Instant, rpc::kRequestTypes> trial_{};
};

}  // namespace cairn::scalerpc
