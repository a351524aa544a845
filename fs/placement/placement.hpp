// The placement of names. See README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

constexpr std::uint32_t kSlots = 4096;

enum class Spread : std::uint8_t {
    Even,    // names without their numbers by hash; numbers by the golden ratio
    Koyama,  // the sum of a name's numbers and other bytes, modulo the daemons, as in CHFS and FINCHFS
};

// Returns the sum of the numbers in a name (each longest run of decimal digits) and of its other bytes, modulo 2^32.
[[nodiscard]] std::uint32_t koyama_hash(std::string_view name) noexcept;

// Maps names to slots. The result is the same for all clients and daemons of a file system, for good.
class Placement {
public:
    // Makes the placement. `daemons` is the number of daemons when the file system was made, 1 to kSlots (asserted).
    Placement(Spread spread, std::uint32_t daemons, const SipKey& key);

    // Returns the slot of a name in a directory. Two words stand for the directory; any two of its own will do.
    [[nodiscard]] std::uint16_t slot_of(std::uint64_t directory, std::uint64_t directory_more,
                                        std::string_view name) const noexcept;
    // Returns the slot of a file's chunk.
    [[nodiscard]] static std::uint16_t slot_of_chunk(std::uint16_t home, std::uint32_t chunk) noexcept {
        return static_cast<std::uint16_t>((home + chunk) % kSlots);
    }

private:
    [[nodiscard]] std::uint32_t even_hash(std::uint64_t directory, std::uint64_t directory_more,
                                          std::string_view name) const noexcept;

    Spread spread_;
    std::uint32_t daemons_;
    SipKey key_;
    std::array<std::uint16_t, kSlots> by_daemon_{};  // the slots, grouped by daemon
};

}  // namespace cairn::fs
