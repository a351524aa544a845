#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

telemetry::CounterList Statistics::list_counters() const {
    telemetry::CounterList list;
    list.add(breaches) CAIRN_LINK_COUNTERS(CAIRN_ADD_LINK_COUNTER, "scalerpc")
        .add({"scalerpc_requests_sent", "requests of ours that left"}, requests_sent)
        .add({"scalerpc_responses_received", "answers that came"}, responses_received)
        .add({"scalerpc_requests_handled", "requests whose handlers ran"}, requests_handled)
        .add({"scalerpc_requests_refused", "requests that were refused"}, requests_refused)
        .add({"scalerpc_requests_declined", "requests not executed: their handlers take no such ones"},
             requests_declined)
        .add({"scalerpc_requests_without_handler", "requests of a type without a handler"}, requests_without_handler)
        .add({"scalerpc_requests_expired", "requests not executed: their callers had given them up"}, requests_expired)
        .add({"scalerpc_legacy_types", "times at which threads got a type that takes longer than a slice"},
             legacy_types)
        .add({"scalerpc_legacy_requests", "requests of such types, for threads"}, legacy_requests)
        .add({"scalerpc_calls_failed", "calls that ended without an answer"}, calls_failed)
        .add({"scalerpc_late_answers", "answers to calls that were cancelled or overdue"}, late_answers)
        .add({"scalerpc_answers_put_off", "long answers that found all buffers lent"}, answers_put_off)
        .add({"scalerpc_answers_given_up", "answers given up for want of memory"}, answers_given_up)
        .add({"scalerpc_switches", "groups whose slice began"}, switches)
        .add({"scalerpc_waited_ns", "time by which switches were late, for requests that were being read"}, waited_ns)
        .add({"scalerpc_notices_alone", "ends of slices that no answer told"}, notices_alone)
        .add({"scalerpc_keys_ended", "clients that did not leave their slice in time"}, keys_ended)
        .add({"scalerpc_fetches", "READs of waiting requests"}, fetches)
        .add({"scalerpc_requests_fetched", "requests that they brought"}, requests_fetched)
        .add({"scalerpc_polls", "blocks that were looked at"}, polls)
        .add({"scalerpc_in_slice_ns", "time in which a client of several servers had a slice somewhere"}, in_slice_ns)
        .add({"scalerpc_stalled_ns", "time of this in which it waited for servers where it had none"}, stalled_ns)
        .add({"scalerpc_sessions_out_of_step",
              "sessions with one of several servers, whose slices are its own: clients "
              "wait at one while another serves them; give servers a slice clock"},
             sessions_out_of_step);
    return list;
}

}  // namespace cairn::scalerpc
