// A shard's counters about its peers in other processes.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::fs {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_PEER_COUNTERS(X)                                                                             \
    X(Found, "fs_peers_found", "times that a shard of another process was there, or was there again")      \
    X(Lost, "fs_peers_lost", "times that one was no longer there")                                         \
    X(Strangers, "fs_peers_refused", "connections without the proof of the cluster's key")                 \
    X(Different, "fs_peers_different", "shards that have the key and go by other facts: see the log")      \
    X(Breaches, "fs_peer_breaches", "messages of proven shards that are none: the connection ended")       \
    X(Overflows, "fs_peer_overflows", "shards that were given up since they took no messages")             \
    X(Told, "fs_peer_messages", "messages to shards of other processes")                                   \
    X(Forwarded, "fs_calls_forwarded", "calls of clients that went to another process")                    \
    X(Unreachable, "fs_calls_unreachable", "of them, those that failed since the other one was not there") \
    X(Foreign, "fs_calls_foreign", "calls of other machines' clients")

CAIRN_DECLARE_COUNTERS(PeerCounter, CAIRN_PEER_COUNTERS);
using PeerCounters = telemetry::CounterSet<PeerCounter>;

}  // namespace cairn::fs
