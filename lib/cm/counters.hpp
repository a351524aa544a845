// Counters of the connection manager. One list gives the kind, the counter's name and what a non-zero value tells the
// operator. Datagrams that are no message at all are counted apart (wire::MadDrop).
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::cm {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_CM_COUNTERS(X)                                                                                     \
    X(Retransmitted, "cm_retransmitted", "messages sent again for want of an answer: loss, or slow peers")       \
    X(GivenUp, "cm_given_up", "peers that did not answer any of the retries")                                    \
    X(Duplicate, "cm_duplicate", "messages that came again: answers of ours were lost, or late copies")          \
    X(Unexpected, "cm_unexpected", "messages that do not fit the state of their connection")                     \
    X(UnknownConnection, "cm_unknown_connection", "messages for connections that ended, or of an earlier life")  \
    X(WrongPeer, "cm_wrong_peer", "messages for a connection from another host: forged, or a changed address")   \
    X(NoListener, "cm_no_listener", "requests for services that nobody listens on")                              \
    X(BadRequest, "cm_bad_request", "requests refused for their transport, path MTU or addresses")               \
    X(Stale, "cm_stale", "requests and replies that showed a peer to have forgotten a connection")               \
    X(BacklogFull, "cm_backlog_full", "requests not looked at: the program accepts more slowly than peers ask")  \
    X(GaveWay, "cm_gave_way", "requests ended for those of hosts with fewer: a flood, or too small a backlog")   \
    X(TableFull, "cm_table_full", "requests refused since there were as many connections as there may be")       \
    X(Overload, "cm_overload", "messages not looked at: what was to be sent before them still waits")            \
    X(AskedForTime, "cm_asked_for_time", "times a peer was asked to wait since the program took long to answer") \
    X(WasAskedForTime, "cm_was_asked_for_time", "times a peer asked to wait for its program")                    \
    X(AlternatePath, "cm_alternate_path", "alternate paths refused: there are none")

CAIRN_DECLARE_COUNTERS(Counter, CAIRN_CM_COUNTERS);

}  // namespace cairn::cm
