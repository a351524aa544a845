// The reasons for which a frame is not taken. One list gives the reason, the counter's name and what a non-zero value
// tells the operator. Drops are counted, never logged per frame.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::net {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_NET_DROPS(X)                                                                                       \
    X(Truncated, "net_truncated", "frames that end inside their headers: a broken or hostile sender")            \
    X(NotForUs, "net_not_for_us", "frames for other stations: a flooding switch, or promiscuous mode")           \
    X(Unsupported, "net_unsupported", "protocols that no one here speaks: ordinary background of a LAN")         \
    X(BadVersion, "net_bad_version", "IP packets whose version is not that of their EtherType")                  \
    X(Options, "net_options", "IP packets with options or extension headers, which are not supported")           \
    X(BadLength, "net_bad_length", "length fields that contradict the frame: damage, or a hostile sender")       \
    X(BadChecksum, "net_bad_checksum", "headers or messages damaged on the way, or a peer that miscounts")       \
    X(Fragment, "net_fragment", "IP fragments: some sender's MTU is larger than the path's")                     \
    X(BadAddress, "net_bad_address", "senders that no one can be: multicast, unspecified, mapped or our own")    \
    X(BadNeighbour, "net_bad_neighbour", "ARP or ND messages that break their rules: hop limit, options, sizes") \
    X(AddressConflict, "net_address_conflict", "another station claims this host's address: find and stop it")   \
    X(TooFrequent, "net_too_frequent", "a neighbour's MAC changed twice in a second: two stations, one address") \
    X(NoBuffer, "net_no_buffer", "answers or questions not sent for want of a buffer")

CAIRN_DECLARE_COUNTERS(Drop, CAIRN_NET_DROPS);

}  // namespace cairn::net
