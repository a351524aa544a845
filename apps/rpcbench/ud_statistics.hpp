// The counters of --system ud.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::rpcbench {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_UD_BREACHES(X)                                                                              \
    X(Malformed, "ud_malformed", "datagrams that are no message of --system ud")                          \
    X(Stranger, "ud_stranger", "messages of no session, or without its token")                            \
    X(UnknownCall, "ud_unknown_call", "answers to calls that are not under way: they came too late")      \
    X(NoSession, "ud_no_session", "callers that found all sessions taken: raise the server's --sessions") \
    X(AnswerTooLong, "ud_answer_too_long", "answers that no datagram carries")

CAIRN_DECLARE_COUNTERS(UdBreach, CAIRN_UD_BREACHES);

struct UdStatistics {
    telemetry::CounterSet<UdBreach> breaches{};
    telemetry::Counter requests_handled;
    telemetry::Counter datagrams_sent;
    telemetry::Counter calls_failed;
    telemetry::Counter peers_lost;
};

}  // namespace cairn::rpcbench
