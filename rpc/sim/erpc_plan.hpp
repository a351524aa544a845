// The size of a simulated world and the length of its phases. The seed decides these in addition to the faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include <array>
#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

struct WorldPlan {
    std::size_t clients = 1;
    std::size_t servers = 1;
    std::size_t guests = 0;  // places of hosts of other scenarios in the same world; these places come first
    bool alone = true;       // the workers run nothing else
    Qpn qpn{0x100};          // queue pair of all endpoints; it decides on which worker of a host the endpoint is
    bool short_path = true;  // small calls take the short path; histories are the same without it
    Family family = Family::V4;
    std::uint16_t path_mtu_bytes = 1024;
    std::uint16_t sessions_max = 64;             // of each endpoint; calls, transfers and memory follow from it
    std::uint32_t message_bytes_max = 16'000;    // 67 packets at the smallest path MTU
    std::uint32_t scarce_part = 16;              // where memory is scarce, a server has its memory divided by this
    Duration patience_most = milliseconds(200);  // the peer timeout of half of the worlds; the others have 30 ms
    Duration harmful = milliseconds(120);
    Duration healing = milliseconds(1500);      // several of the longest retransmission timeouts
    Duration calling_again = milliseconds(20);  // after the healing

    [[nodiscard]] std::size_t guests_from() const noexcept { return clients + servers + guests; }
    [[nodiscard]] std::size_t pool_bytes() const noexcept { return std::size_t{sessions_max} << 17U; }

    [[nodiscard]] static WorldPlan of_seed(std::uint64_t seed) noexcept {
        return {.clients = 1 + seed % 3,
                .servers = 1 + seed % 2,
                .family = family_of(seed),
                .path_mtu_bytes = path_mtu_of(seed),
                .scarce_part = seed / 8 % 2 == 0 ? 24U : 48U};
    }
    // Returns a plan of one client and one server. The same faults happen to them for a shorter time. Timeouts grow
    // less in that time, so the healing is shorter too.
    [[nodiscard]] static WorldPlan small_of_seed(std::uint64_t seed) noexcept {
        return {.family = family_of(seed),
                .path_mtu_bytes = path_mtu_of(seed),
                .sessions_max = 96,  // if two hosts take all they can, a sixteenth is left to the others
                .message_bytes_max = 6'000,
                .patience_most = milliseconds(60),
                .harmful = milliseconds(6),
                .healing = milliseconds(240),
                .calling_again = milliseconds(3)};
    }

private:
    [[nodiscard]] static std::uint16_t path_mtu_of(std::uint64_t seed) noexcept {
        constexpr std::array<std::uint16_t, 3> kPathMtus{256, 1024, 4096};
        return kPathMtus[Random(seed ^ 0x374U).below(kPathMtus.size())];
    }
    [[nodiscard]] static Family family_of(std::uint64_t seed) noexcept {
        return seed % 5 < 3 ? Family::V4 : Family::V6;
    }
};

}  // namespace cairn::sim
