// The counters of --system ud.
#pragma once

#include "lib/telemetry/counter_list.hpp"

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

    [[nodiscard]] telemetry::CounterList list_counters() const {
        telemetry::CounterList list;
        list.add(breaches)
            .add({"ud_requests_handled", "requests whose handlers ran"}, requests_handled)
            .add({"ud_datagrams_sent", "requests and answers that were sent"}, datagrams_sent)
            .add({"ud_calls_failed", "calls that ended without an answer"}, calls_failed)
            .add({"ud_peers_lost", "peers that fell silent"}, peers_lost);
        return list;
    }
};

}  // namespace cairn::rpcbench
