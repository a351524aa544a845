// Reasons why copyrpc closes a connection: its peer breaks the rules. One list gives the reason, the counter's name and
// what a non-zero value means.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::copyrpc {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_COPYRPC_BREACHES(X)                                                                                 \
    X(BadImmediate, "copyrpc_bad_immediate", "batches outside the space that their sender had")                   \
    X(BadHeader, "copyrpc_bad_header", "batches of another version, or not the ones that come next")              \
    X(BadCredit, "copyrpc_bad_credit", "batches that return or promise more than there is")                       \
    X(BadMessage, "copyrpc_bad_message", "messages that are none, or do not fill their batch as its header says") \
    X(Overdrawn, "copyrpc_overdrawn", "requests for more room for answers than was promised")                     \
    X(BadPlace, "copyrpc_bad_place", "long messages outside the memory that callers lend")                        \
    X(UnknownCall, "copyrpc_unknown_call", "answers to calls that are not under way on their connection")

CAIRN_DECLARE_COUNTERS(Breach, CAIRN_COPYRPC_BREACHES);

}  // namespace cairn::copyrpc
