// Pure verdicts on packets: state in, verdict out, nothing changed. Endpoint acts on them.
#pragma once

#include <cstdint>

#include "rpc/erpc/header.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

enum class RequestVerdict : std::uint8_t {
    Execute,    // the next request of the slot
    Resend,     // the current one again, already answered
    Busy,       // the current one again or the next one, while the handler is at work
    Stale,      // older than the current one
    Future,     // further ahead than a client can have come by cancelling
    WrongSize,  // not a whole message in one packet
};

// How far a slot's number may jump: cancelled requests that never arrived leave gaps.
constexpr std::uint64_t kMaxRequestJump = std::uint64_t{kSlotsPerSession} * 4096;

[[nodiscard]] constexpr RequestVerdict judge_request(ServerSlotState state, std::uint64_t current, const Header& header,
                                                     std::size_t payload_bytes) noexcept {
    if (header.request_number < current) {
        return RequestVerdict::Stale;
    }
    if (header.request_number == current) {
        switch (state) {
            case ServerSlotState::Idle:
                return RequestVerdict::Stale;
            case ServerSlotState::Executing:
                return RequestVerdict::Busy;
            case ServerSlotState::Answered:
                return RequestVerdict::Resend;
        }
    }
    if (header.request_number - current > kMaxRequestJump) {
        return RequestVerdict::Future;
    }
    if (state == ServerSlotState::Executing) {
        return RequestVerdict::Busy;
    }
    if (header.packet_number != 0 || header.message_bytes != payload_bytes) {
        return RequestVerdict::WrongSize;
    }
    return RequestVerdict::Execute;
}

enum class ResponseVerdict : std::uint8_t { Take, Stale, WrongSize };

[[nodiscard]] inline ResponseVerdict judge_response(const ClientSlot& slot, const Header& header,
                                                    std::size_t payload_bytes) noexcept {
    if (slot.call == kNone || slot.sends == 0 || header.request_number != slot.request_number) {
        return ResponseVerdict::Stale;
    }
    if (header.packet_number != 0 || header.message_bytes != payload_bytes) {
        return ResponseVerdict::WrongSize;
    }
    return ResponseVerdict::Take;
}

}  // namespace cairn::erpc
