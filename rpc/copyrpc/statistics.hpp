// The counters of an endpoint.
#pragma once

#include "lib/telemetry/counters.hpp"
#include "rpc/copyrpc/breaches.hpp"
#include "rpc/linked/links.hpp"

namespace cairn::copyrpc {

// Its worker's thread counts; any thread may read.
struct Statistics {
    telemetry::CounterSet<Breach> breaches{};
    rpc::LinkCounters links{};
    telemetry::Counter requests_sent;
    telemetry::Counter responses_received;
    telemetry::Counter requests_handled;
    telemetry::Counter requests_refused;
    telemetry::Counter requests_without_handler;
    telemetry::Counter requests_expired;  // not executed: their callers had given them up
    telemetry::Counter calls_failed;
    telemetry::Counter late_answers;      // of calls that were cancelled or overdue
    telemetry::Counter requests_fetched;  // of those handled, READ at their callers
    telemetry::Counter answers_written;   // to rooms of callers, by themselves
    telemetry::Counter answers_given_up;  // for want of memory
    telemetry::Counter batches_sent;
    telemetry::Counter batches_empty;  // of these, those that carried credit alone
};

}  // namespace cairn::copyrpc
