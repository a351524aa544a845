// The counters of packets of connections that the engine sends.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::roce {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_ENGINE_COUNTERS(X)                                                                                      \
    X(PacketsSent, "rc_packets_sent", "packets of connections handed to the port")                                    \
    X(PacketsResent, "rc_packets_resent", "request packets sent again: losses, or a timeout too short for the path")  \
    X(PayloadsInPlace, "rc_payloads_in_place", "payloads sent from where they lie")                                   \
    X(MemoryVanished, "rc_memory_vanished", "packets that were not sent, since their registered memory was unmapped") \
    X(NoBuffer, "rc_no_buffer", "turns that ended early since the port had no buffer or no room: it limits the rate") \
    X(ContextHits, "emulated_context_hits", "requests whose queue pair was in the emulated context cache")            \
    X(ContextMisses, "emulated_context_misses", "requests that waited for the emulated context cache")

CAIRN_DECLARE_COUNTERS(EngineCounter, CAIRN_ENGINE_COUNTERS);

}  // namespace cairn::roce
