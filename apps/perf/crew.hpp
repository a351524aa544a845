// What the workers of one cairn-perf have in common.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "lib/base/sip_hash.hpp"
#include "lib/connections/agent.hpp"

namespace cairn::perf {

// Read and written by all workers' threads.
struct Crew {
    Crew(std::uint32_t count, const SipKey& key) : workers(count), pass_key(key) {}

    const std::uint32_t workers;
    const SipKey pass_key;  // of a server: what one worker tells a client, all believe
    const std::shared_ptr<connections::Agent> agent = connections::Agent::create();

    std::atomic<bool> failed{false};  // some worker has: the others end
    // Of a client: how often a worker had all connections of a size. Measuring begins when all have.
    std::atomic<std::uint32_t> connected{0};
    // Of a server: its guests, and whether a client said that it asks for no more.
    std::atomic<std::uint32_t> guests{0};
    std::atomic<bool> last_came{false};
};

// A worker's place among them.
struct Seat {
    Crew& crew;
    std::uint32_t number = 0;

    // Its part of so many things; all parts together are all of them.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t all) const noexcept {
        return all / crew.workers + (number < all % crew.workers ? 1 : 0);
    }
};

}  // namespace cairn::perf
