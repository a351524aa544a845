// The reasons to drop datagrams: one list of reason, counter name, and what a non-zero value tells the operator. Drops
// are counted, never logged.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::roce {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_ROCE_DROPS(X)                                                                                       \
    X(BadIcrc, "roce_bad_icrc", "packets damaged on the way, or a peer that computes the ICRC wrongly")           \
    X(TooShort, "roce_too_short", "packets that end inside their headers: a broken or hostile sender")            \
    X(BadVersion, "roce_bad_version", "packets of another transport header version")                              \
    X(BadOpcode, "roce_bad_opcode", "opcodes that a datagram queue pair does not take")                           \
    X(UnknownQpn, "roce_unknown_qpn", "packets for a queue pair that does not exist (any more)")                  \
    X(BadPkey, "roce_bad_pkey", "peers of another partition: compare the P_Keys of both ends")                    \
    X(BadQkey, "roce_bad_qkey", "peers that do not know this queue pair's Q_Key")                                 \
    X(BadLength, "roce_bad_length", "payload longer than the path MTU, or a pad that does not fit")               \
    X(TxQueueFull, "roce_tx_queue_full", "the port takes packets more slowly than the application makes them")    \
    X(WrongPeer, "roce_wrong_peer", "packets for a connection from another host than its peer: forged, or stale") \
    X(WrongState, "roce_wrong_state", "datagrams for a queue pair that is not ready to receive")                  \
    X(NoReceive, "roce_no_receive", "datagrams that found no receive request: post more of them")                 \
    X(ReceiveTooShort, "roce_receive_too_short", "datagrams longer than the receive request behind its first 40 bytes")

CAIRN_DECLARE_COUNTERS(Drop, CAIRN_ROCE_DROPS);

}  // namespace cairn::roce
