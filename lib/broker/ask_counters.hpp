// What a running broker has counted, for whoever wants to know: it has no terminal to show it on.
#pragma once

#include "lib/base/result.hpp"
#include "lib/broker/counters.hpp"
#include "lib/broker/packets.hpp"

namespace cairn::broker {

// Asks the broker of the place. Errors: there is none; it is another user's, whom root alone believes; it has not said
// all within `patience`.
[[nodiscard]] Result<telemetry::CounterSnapshot<Counter>> ask_for_counters(const Place& place, Duration patience);

}  // namespace cairn::broker
