// The counters of a UringPort: one list of names, and meanings for the operator.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::port {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_URING_COUNTERS(X)                                                                                       \
    X(Received, "port_received", "datagrams handed to the engine")                                                    \
    X(ReceivedBatches, "port_received_batches", "receive calls that brought datagrams")                               \
    X(Transmitted, "port_transmitted", "datagrams given to the kernel")                                               \
    X(TransmittedBatches, "port_transmitted_batches", "send calls that took datagrams")                               \
    X(SolvedIds, "port_solved_ids", "datagrams of peers that count IPv4 IDs: verified but for those 16 bits")         \
    X(BadIcrc, "port_bad_icrc", "datagrams whose ICRC is wrong: damage, or a peer that miscounts")                    \
    X(TooShort, "port_too_short", "datagrams without room for a BTH and an ICRC: a broken or hostile sender")         \
    X(TooLong, "port_too_long", "datagrams or batches longer than a buffer: the sender's path MTU is no RoCE MTU")    \
    X(NoPath, "port_no_path", "datagrams from more peers than the path table holds")                                  \
    X(NoBuffer, "port_no_buffer", "buffers asked for while none was free: the engine has them all, queued or in use") \
    X(SendWaited, "port_send_waited", "sends that found the socket's buffer full and were tried again")               \
    X(SendFailed, "port_send_failed", "datagrams the kernel refused to send: no route, or a firewall")                \
    X(RouteMtu, "port_route_mtu", "datagrams longer than the route to their peer carries: lower --path-mtu")          \
    X(SentSingly, "port_sent_singly", "datagrams of batches that the route to their peer refused to take whole")      \
    X(HandedOver, "port_handed_over", "datagrams that came to another worker's socket: batches of several workers")   \
    X(HandedOverFull, "port_handed_over_full", "datagrams of a worker that does not keep up, dropped on their way")   \
    X(ReceiveFailed, "port_receive_failed", "errors of the socket while receiving")

CAIRN_DECLARE_COUNTERS(UringCounter, CAIRN_URING_COUNTERS);

}  // namespace cairn::port
