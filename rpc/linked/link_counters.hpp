// Counters of an endpoint's connections: how they began, and why they ended.
#pragma once

#include "lib/telemetry/counter_list.hpp"

namespace cairn::rpc {

// X(member, counter name, what non-zero means). The names begin with the RPC system's.
#define CAIRN_LINK_COUNTERS(X, system)                                                                             \
    X(opened, system "_opened", "sessions that opened")                                                            \
    X(ended_here, system "_ended_here", "sessions that this end ended")                                            \
    X(ended_there, system "_ended_there", "sessions that their peers ended")                                       \
    X(peers_lost, system "_peers_lost", "sessions that ended since their peer fell silent or broke a rule")        \
    X(rejected, system "_rejected", "connections that did not open: the peer refused them, or its greeting is no") \
    X(unanswered, system "_unanswered", "connections that did not open: the peer did not answer")                  \
    X(displaced, system "_displaced", "peers that had asked but not answered, and gave way to others")             \
    X(refused, system "_refused",                                                                                  \
      "connections refused: no handler, session, memory, or greeting; or their host has its share")

#define CAIRN_LINK_COUNTER(member, name, meaning) telemetry::Counter member;
struct LinkCounters {
    CAIRN_LINK_COUNTERS(CAIRN_LINK_COUNTER, "")
};
#undef CAIRN_LINK_COUNTER

// Adds the LinkCounters `links` to the CounterList `list`, named after the system.
#define CAIRN_ADD_LINK_COUNTER(member, name, meaning) .add({name, meaning}, links.member)

}  // namespace cairn::rpc
