// The counters of an endpoint.
#pragma once

#include "lib/telemetry/counters.hpp"
#include "rpc/copyrpc/breaches.hpp"

namespace cairn::copyrpc {

// Its worker's thread counts; any thread may read.
struct Statistics {
    telemetry::CounterSet<Breach> breaches{};
    telemetry::Counter requests_sent;
    telemetry::Counter responses_received;
    telemetry::Counter requests_handled;
    telemetry::Counter requests_refused;
    telemetry::Counter requests_without_handler;
    telemetry::Counter requests_expired;  // not executed: their callers had given them up
    telemetry::Counter calls_failed;
    telemetry::Counter late_answers;  // of calls that were cancelled or overdue
    telemetry::Counter batches_sent;
    telemetry::Counter batches_empty;  // of these, those that carried credit alone
    telemetry::Counter peers_lost;
    telemetry::Counter connections_displaced;  // of peers that had not answered, for the sake of others
    telemetry::Counter connections_refused;    // of peers: no handler, no session, no memory, or no greeting
};

}  // namespace cairn::copyrpc
