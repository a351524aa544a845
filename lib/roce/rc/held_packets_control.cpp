#include "lib/roce/rc/held_packets.hpp"

#include "lib/base/assert.hpp"

namespace cairn::roce::rc {

HeldPackets::HeldPackets(std::uint32_t slots) : slots_(slots) {
    CAIRN_ASSERT(slots >= 1 && slots <= 1U << 20U);
    for (std::uint32_t i = 0; i + 1 < slots; ++i) {
        slots_[i].next = i + 1;
    }
}

}  // namespace cairn::roce::rc
