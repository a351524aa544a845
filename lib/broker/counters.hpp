// The counters of a broker: one list of names, and meanings for the operator.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::broker {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_BROKER_COUNTERS(X)                                                                                   \
    X(Lent, "broker_lent", "slots lent to programs")                                                               \
    X(Rejoined, "broker_rejoined", "programs that an earlier broker had left behind")                              \
    X(Ended, "broker_ended", "programs that ended, or left the address")                                           \
    X(Refused, "broker_refused", "programs that were refused the address")                                         \
    X(AnotherUser, "broker_another_user", "connections of other users")                                            \
    X(Crowded, "broker_crowded", "connections refused since too many others say nothing")                          \
    X(NoDescriptor, "broker_no_descriptor", "connections not taken, or ended, for want of descriptors")            \
    X(Silent, "broker_silent", "connections that said nothing in time")                                            \
    X(Garbage, "broker_garbage", "connections ended since they sent what no program of this version sends")        \
    X(Forwarded, "broker_forwarded", "datagrams that came to the wrong socket and were led to their program")      \
    X(NoOwner, "broker_no_owner", "datagrams for queue pairs of no program: it ended, or a stranger sends")        \
    X(NoRoom, "broker_no_room", "datagrams of a program that does not take them, dropped on their way")            \
    X(Managed, "broker_managed", "management datagrams led to the programs that they are for")                     \
    X(NoManager, "broker_no_manager", "management datagrams that no program is there for, or that are none")       \
    X(StrangeSender, "broker_strange_sender", "management datagrams that no connection manager of a host sent")    \
    X(WrongQkey, "broker_wrong_qkey", "management datagrams of senders that may not send such")                    \
    X(BadIcrc, "broker_bad_icrc", "management datagrams that were damaged on their way")                           \
    X(ServiceTaken, "broker_service_taken", "services (ports of rdma_cm) refused, since another program has them") \
    X(WillsLost, "broker_wills_lost", "connections of a program that has too many to be ended for it")             \
    X(WillsSent, "broker_wills_sent", "messages that end connections of programs that died")                       \
    X(Hidden, "broker_hidden", "slots not lent since a program of an earlier broker has not come back")

CAIRN_DECLARE_COUNTERS(Counter, CAIRN_BROKER_COUNTERS);

}  // namespace cairn::broker
