// The counters of connections: one list of name and meaning, for the operator.
#pragma once

#include "lib/telemetry/counters.hpp"

namespace cairn::roce::rc {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_RC_COUNTERS(X)                                                                                          \
    X(WrongState, "rc_wrong_state", "packets for a queue pair that does not receive (yet, or any more)")              \
    X(WrongService, "rc_wrong_service", "packets of another transport service than the queue pair's")                 \
    X(BadPkey, "rc_bad_pkey", "peers of another partition: compare the P_Keys of both ends")                          \
    X(DuplicateRequest, "rc_duplicate_request", "requests received again: answers lost, or the peer's timeout short") \
    X(DuplicateUnknown, "rc_duplicate_unknown", "old READs and atomics that no saved answer fits; dropped")           \
    X(OutOfSequence, "rc_out_of_sequence", "requests behind a gap: packets lost or reordered on the way")             \
    X(NakSequenceSent, "rc_nak_sequence_sent", "gaps reported to peers: packets lost or reordered on the way")        \
    X(RnrNakSent, "rc_rnr_nak_sent", "messages that found no receive request: post more, or sooner")                  \
    X(NakFatalSent, "rc_nak_fatal_sent", "requests refused (invalid, access, operational): the connection ends")      \
    X(NakSequenceReceived, "rc_nak_sequence_received", "gaps that peers saw: packets lost or reordered on the way")   \
    X(Held, "rc_held", "requests that came early and were kept: packets lost or reordered on the way")                \
    X(HeldInVain, "rc_held_in_vain", "gaps that peers left open for seconds: what came behind them was dropped")      \
    X(RnrNakReceived, "rc_rnr_nak_received", "peers that were not ready to receive")                                  \
    X(NakFatalReceived, "rc_nak_fatal_received", "requests that peers refused: the connection ended")                 \
    X(ImpliedNak, "rc_implied_nak", "answers to READs or atomics that were lost on the way")                          \
    X(Timeout, "rc_timeout", "silences of peers: lost acknowledgements, or a timeout too short for the path")         \
    X(EarlyTimeout, "rc_early_timeout", "silences longer than round trips take here: packets lost on the way")        \
    X(StaleResponse, "rc_stale_response", "answers to what is answered already: duplicates on the way")               \
    X(UnsentResponse, "rc_unsent_response", "answers to packets never sent: a broken or hostile peer")                \
    X(UnexpectedResponse, "rc_unexpected_response", "answers of another kind than asked for; dropped")                \
    X(BadResponse, "rc_bad_response", "READ responses of a wrong length: the connection ended")                       \
    X(Marked, "rc_marked_received", "packets that a switch marked: the network to us is crowded")                     \
    X(CnpSent, "rc_cnp_sent", "congestion notifications: peers were told that the network to us is crowded")          \
    X(CnpReceived, "rc_cnp_received", "peers saw marks on our packets: the network to them is crowded")               \
    X(PacedTurns, "rc_paced_turns", "turns that ended early since the connection's rate was used up: see CNPs")       \
    X(UnreliableCut, "uc_message_cut", "messages of unreliable connections that lack packets: lost on the way")       \
    X(UnreliableRest, "uc_packet_without_first", "packets of messages whose beginning was lost; dropped")             \
    X(UnreliableRefused, "uc_message_refused", "messages without a receive request, too long, or not allowed; dropped")

CAIRN_DECLARE_COUNTERS(RcCounter, CAIRN_RC_COUNTERS);

using RcCounters = telemetry::CounterSet<RcCounter>;

}  // namespace cairn::roce::rc
