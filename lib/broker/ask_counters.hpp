// Reads the counters of a running broker, which has no terminal to show them on.
#pragma once

#include "lib/base/result.hpp"
#include "lib/broker/counters.hpp"
#include "lib/broker/packets.hpp"

namespace cairn::broker {

// Asks the broker of the place for its counters. Errors: there is no broker; it is another user's (root trusts any
// user's); it has not sent all within `patience`.
[[nodiscard]] Result<telemetry::CounterSnapshot<Counter>> ask_for_counters(const Place& place, Duration patience);

}  // namespace cairn::broker
