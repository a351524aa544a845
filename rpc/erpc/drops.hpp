// Reasons why eRPC drops a packet. One list gives the reason, the counter's name and what a non-zero value means.
#pragma once

#include <cstdint>

#include "lib/telemetry/counter_list.hpp"

namespace cairn::erpc {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_ERPC_DROPS(X)                                                                                      \
    X(Malformed, "erpc_malformed", "packets that are no eRPC of this version: another program on this Q_Key")    \
    X(UnknownSession, "erpc_unknown_session", "packets for sessions that ended, or a peer that was restarted")   \
    X(WrongPeer, "erpc_wrong_peer", "packets for a session from another host or queue pair: forged or stale")    \
    X(StaleRequest, "erpc_stale_request", "late copies of requests already answered and forgotten")              \
    X(FutureRequest, "erpc_future_request", "request numbers far ahead: their client is asked to confirm them")  \
    X(DuplicateBusy, "erpc_duplicate_busy", "retransmitted requests whose handler is still at work")             \
    X(StaleResponse, "erpc_stale_response", "late copies of responses already taken")                            \
    X(BadSize, "erpc_bad_size", "packets whose size does not fit the message they claim, or its buffer")         \
    X(OutOfOrder, "erpc_out_of_order", "packets behind a gap that could not be held: they are sent again")       \
    X(NoHandler, "erpc_no_handler", "requests of a type without a handler: their calls fail")                    \
    X(NoBuffer, "erpc_no_buffer", "packets not sent, requests put off for want of memory: they are asked again") \
    X(ShareTaken, "erpc_share_taken", "large requests put off: their session or host had its share of memory")   \
    X(RequestGivenUp, "erpc_request_given_up", "half-received requests let go: silent clients, or slow ones")    \
    X(AnswerForgotten, "erpc_answer_forgotten", "old answers let go: nobody asked, or memory was short")         \
    X(BackgroundFull, "erpc_background_full", "requests put off because every background job was out: too few")  \
    X(StaleAnswer, "erpc_stale_answer", "answers of background handlers whose session had ended meanwhile")

CAIRN_DECLARE_COUNTERS(Drop, CAIRN_ERPC_DROPS);

// The counters of an endpoint. The worker's thread counts; any thread may read.
struct Statistics {
    telemetry::CounterSet<Drop> drops{};
    telemetry::Counter requests_sent;
    telemetry::Counter responses_received;
    telemetry::Counter requests_handled;
    telemetry::Counter retransmits;
    telemetry::Counter responses_resent;
    telemetry::Counter calls_failed;
    telemetry::Counter calls_restarted;  // large requests that their server gave up, and that began anew
    telemetry::Counter requests_refused;
    telemetry::Counter requests_declined;  // not executed: their handlers do not take such requests
    telemetry::Counter peers_lost;
    telemetry::Counter controls_sent;
    telemetry::Counter congestion_notified;  // how often ECN marks or BECN cut a flow of ours

    void count(Drop reason) noexcept { drops.count(reason); }
    [[nodiscard]] std::uint64_t of(Drop reason) const noexcept { return drops.of(reason); }
    [[nodiscard]] telemetry::CounterList list_counters() const;
};

}  // namespace cairn::erpc
