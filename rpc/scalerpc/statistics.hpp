// The counters of an endpoint, and the reasons why it closes connections.
#pragma once

#include "lib/telemetry/counter_list.hpp"
#include "rpc/linked/links.hpp"
#include "rpc/linked/request_counters.hpp"

namespace cairn::scalerpc {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_SCALERPC_BREACHES(X)                                                               \
    X(BadBlock, "scalerpc_bad_block", "requests that are none, or do not fit their blocks")      \
    X(BadAnswer, "scalerpc_bad_answer", "answers that are none, or to requests that nobody has") \
    X(BadEntry, "scalerpc_bad_entry", "entries that name requests which cannot be")              \
    X(BadNews, "scalerpc_bad_news", "slices of servers that took requests which were not there") \
    X(Overdrawn, "scalerpc_overdrawn", "requests in blocks whose last request was not answered") \
    X(BadFetch, "scalerpc_bad_fetch", "requests that are none, or longer than what was read of them")

CAIRN_DECLARE_COUNTERS(Breach, CAIRN_SCALERPC_BREACHES);

// Counters of a client of several servers.
struct ServersStatistics {
    // Time in which the client has a slice somewhere. Of this, stalled_ns is the time in which it waits only for
    // servers where it has none. Counted with EndpointConfig::watches_stalls.
    telemetry::Counter in_slice_ns;
    telemetry::Counter stalled_ns;
    telemetry::Counter sessions_out_of_step;  // sessions with servers whose slices are their own: see stalled_ns
};

// The worker's thread counts; any thread may read.
struct Statistics : ServersStatistics, rpc::RequestCounters {
    telemetry::CounterSet<Breach> breaches{};
    rpc::LinkCounters links{};
    telemetry::Counter requests_sent;
    telemetry::Counter responses_received;
    telemetry::Counter legacy_types;     // how often threads got a type that takes longer than a slice
    telemetry::Counter legacy_requests;  // requests of such types, for threads
    telemetry::Counter calls_failed;
    telemetry::Counter late_answers;      // to calls that were cancelled or had passed their deadline
    telemetry::Counter answers_put_off;   // waited for a buffer for long answers
    telemetry::Counter answers_given_up;  // for want of memory
    telemetry::Counter switches;
    telemetry::Counter waited_ns;      // delay of switches that waited for READs of requests
    telemetry::Counter notices_alone;  // notices without an answer
    telemetry::Counter keys_ended;     // keys of clients that did not leave their slice in time
    telemetry::Counter fetches;        // READs of waiting requests
    telemetry::Counter requests_fetched;
    telemetry::Counter polls;  // blocks looked at

    [[nodiscard]] telemetry::CounterList list_counters() const;
};

}  // namespace cairn::scalerpc
