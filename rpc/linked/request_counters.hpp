// Counters of an endpoint's requests, by the way in which they ended.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::rpc {

struct RequestCounters {
    telemetry::Counter requests_handled;
    telemetry::Counter requests_refused;
    telemetry::Counter requests_declined;  // not executed: their handlers do not take such requests
    telemetry::Counter requests_without_handler;
    telemetry::Counter requests_expired;  // not executed: their callers had given them up
};

}  // namespace cairn::rpc
