// Judges the answers that a completer takes. Pure functions (IBTA vol. 1, 9.7.5, 9.7.6).
#pragma once

#include <cstdint>

#include "lib/roce/qp/work.hpp"
#include "lib/wire/packet.hpp"

namespace cairn::roce::rc {

// The place of an answer's PSN relative to the outstanding PSNs, [unacknowledged, sent).
enum class AnswerPsnVerdict : std::uint8_t { Current, Stale, Unsent };
[[nodiscard]] constexpr AnswerPsnVerdict judge_answer_psn(Psn psn, Psn unacknowledged, Psn sent) noexcept {
    if (psn.since(unacknowledged) < 0) {
        return AnswerPsnVerdict::Stale;
    }
    return psn.since(sent) < 0 ? AnswerPsnVerdict::Current : AnswerPsnVerdict::Unsent;
}

// Returns true if a READ response has the right length and place. Its length follows from the bytes left of the READ.
// Its place in the answer shows if they are more than the path MTU (9.7.5).
[[nodiscard]] constexpr bool has_read_length(wire::Place place, std::size_t payload_bytes, std::uint64_t left_bytes,
                                             std::uint32_t path_mtu_bytes) noexcept {
    const bool more_follow = place == wire::Place::First || place == wire::Place::Middle;
    const bool more_wanted = left_bytes > path_mtu_bytes;
    const std::uint64_t wanted = more_wanted ? path_mtu_bytes : left_bytes;
    return more_follow == more_wanted && payload_bytes == wanted;
}

// Returns the status of a request that the peer refused by this NAK. PsnSequence refuses none.
[[nodiscard]] constexpr CompletionStatus status_of(wire::NakCode code) noexcept {
    switch (code) {
        case wire::NakCode::RemoteAccess:
            return CompletionStatus::RemoteAccess;
        case wire::NakCode::RemoteOperational:
            return CompletionStatus::RemoteOperation;
        case wire::NakCode::PsnSequence:
        case wire::NakCode::InvalidRequest:
        case wire::NakCode::InvalidRdRequest:
            break;
    }
    return CompletionStatus::RemoteInvalidRequest;
}

}  // namespace cairn::roce::rc
