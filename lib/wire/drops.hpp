// The reasons for which a UDP payload is no RoCEv2 packet. One list gives the reason, the counter's name and what a
// non-zero value tells the operator. Drops are counted, never logged per packet.
#pragma once

#include "lib/base/parsed.hpp"
#include "lib/telemetry/counters.hpp"

namespace cairn::wire {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_WIRE_DROPS(X)                                                                                          \
    X(Truncated, "wire_truncated", "packets that end inside their headers: a broken or hostile sender")              \
    X(BadVersion, "wire_bad_version", "packets of another transport header version")                                 \
    X(UnknownOpcode, "wire_unknown_opcode", "opcodes that no transport service here has: reserved, or a newer peer") \
    X(BadSyndrome, "wire_bad_syndrome", "acknowledgements whose syndrome is a reserved one")                         \
    X(BadLength, "wire_bad_length", "packets that are no whole number of words: damage, or a hostile sender")        \
    X(BadPad, "wire_bad_pad", "pad counts larger than what they are a part of")                                      \
    X(UnexpectedPayload, "wire_unexpected_payload", "payload behind headers that take none")

CAIRN_DECLARE_COUNTERS(Drop, CAIRN_WIRE_DROPS);

template <class T>
using Parsed = cairn::Parsed<T, Drop>;

}  // namespace cairn::wire
