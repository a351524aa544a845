// The state that the workers of one cairn-perf share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "lib/base/sip_hash.hpp"
#include "lib/base/time.hpp"
#include "lib/connections/agent.hpp"

namespace cairn::perf {

// All workers' threads read and write it.
struct Crew {
    Crew(std::uint32_t count, const SipKey& key) : workers(count), pass_key(key) {}

    const std::uint32_t workers;
    const SipKey pass_key;  // of a server: all workers accept the passes of each
    const std::shared_ptr<connections::Agent> agent = connections::Agent::create();

    std::atomic<bool> failed{false};  // a worker has failed; the others end
    // Of a client: how many times a worker had all connections of a size. Measuring begins when all workers have
    // theirs.
    std::atomic<std::uint32_t> connected{0};
    // Of a server: the number of its connections, the time when the last one ended, and whether a client announced its
    // last connection.
    std::atomic<std::uint32_t> guests{0};
    std::atomic<Instant> left_at{Instant{}};
    std::atomic<bool> last_came{false};
};

// A worker's place in the crew.
struct Seat {
    Crew& crew;
    std::uint32_t number = 0;

    // Returns this worker's part of `all`. The parts of all workers add up to `all`.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t all) const noexcept {
        return all / crew.workers + (number < all % crew.workers ? 1 : 0);
    }
};

}  // namespace cairn::perf
