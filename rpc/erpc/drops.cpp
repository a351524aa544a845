#include "rpc/erpc/drops.hpp"

namespace cairn::erpc {

telemetry::CounterList Statistics::list_counters() const {
    telemetry::CounterList list;
    list.add(drops)
        .add({"erpc_requests_sent", "requests of ours that left for the first time"}, requests_sent)
        .add({"erpc_responses_received", "answers that came whole"}, responses_received)
        .add({"erpc_requests_handled", "requests whose handlers ran"}, requests_handled)
        .add({"erpc_retransmits", "times a call went on from its last gap: packets lost, or slow peers"}, retransmits)
        .add({"erpc_responses_resent", "answers sent again since their requests came again"}, responses_resent)
        .add({"erpc_calls_failed", "calls that ended without an answer"}, calls_failed)
        .add({"erpc_calls_restarted", "large requests begun again: their server had given them up"}, calls_restarted)
        .add({"erpc_requests_refused", "requests of peers that were refused, or asked to be confirmed"},
             requests_refused)
        .add({"erpc_requests_declined", "requests not executed: their handlers take no such ones"}, requests_declined)
        .add({"erpc_peers_lost", "sessions that ended since their peer fell silent or was restarted"}, peers_lost)
        .add({"erpc_controls_sent", "packets sent that carry no message: pings, credits, ends"}, controls_sent)
        .add({"erpc_congestion_notified",
              "times a flow was cut because switches marked its packets: the network is crowded"},
             congestion_notified);
    return list;
}

}  // namespace cairn::erpc
