#include "lib/roce/context_cache.hpp"

#include "lib/base/assert.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::roce {

ContextCache::ContextCache(const ContextCacheEmulation& emulation,
                           telemetry::CounterSet<EngineCounter>& counters) noexcept
    : emulation_(emulation), counters_(counters) {
    CAIRN_ASSERT(!is_on() || emulation.wait != nullptr);
}

bool ContextCache::is_request(std::uint8_t opcode) noexcept {
    const wire::OpcodeTraits* const traits = wire::find_opcode(opcode);
    return traits != nullptr && traits->role == wire::Role::Request;
}

void ContextCache::fetch(Turn& queue_pair) noexcept {
    const bool is_there = queue_pair.cached.listed;
    recent_.remove(queue_pair);
    recent_.push(queue_pair);
    if (is_there) {
        counters_.count(EngineCounter::ContextHits);
        return;
    }
    if (recent_.size() > emulation_.contexts) {
        (void)recent_.pop();
    }
    counters_.count(EngineCounter::ContextMisses);
    emulation_.wait(emulation_.miss);
}

}  // namespace cairn::roce
