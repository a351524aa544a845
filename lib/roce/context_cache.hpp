// Emulates the cache of queue pairs' contexts that adapters in hardware have; off by default. This engine needs none,
// since a queue pair's context lies in the host's memory.
#pragma once

#include <cstdint>

#include "lib/roce/engine_config.hpp"
#include "lib/roce/engine_counters.hpp"
#include "lib/roce/qp/turn.hpp"

namespace cairn::roce {

// Has the contexts of the queue pairs that sent requests last. Acknowledgements, answers and received packets need none
// (ScaleRPC, 2.2: incoming writes do not suffer from many connections).
class ContextCache {
public:
    // Makes the cache. If it has contexts, `emulation` has a wait (asserted). The counters outlive the cache.
    ContextCache(const ContextCacheEmulation& emulation, telemetry::CounterSet<EngineCounter>& counters) noexcept;

    // Fetches the context of a queue pair that is about to send requests. If it is not there, the worker waits, and the
    // least recently used context gives way.
    void use(Turn& queue_pair) noexcept {
        if (is_on()) [[unlikely]] {
            fetch(queue_pair);
        }
    }
    // As use(), if the packet is a request.
    void use_for(std::uint8_t opcode, Turn& queue_pair) noexcept {
        if (is_on() && is_request(opcode)) [[unlikely]] {
            fetch(queue_pair);
        }
    }
    // Forgets a queue pair that ends.
    void forget(Turn& queue_pair) noexcept { recent_.remove(queue_pair); }

private:
    [[nodiscard]] bool is_on() const noexcept { return emulation_.contexts != 0; }
    [[nodiscard]] static bool is_request(std::uint8_t opcode) noexcept;
    void fetch(Turn& queue_pair) noexcept;

    const ContextCacheEmulation emulation_;
    telemetry::CounterSet<EngineCounter>& counters_;
    QpRing<Turn, &Turn::cached> recent_;
};

}  // namespace cairn::roce
