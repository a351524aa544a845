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

// Request numbers begin anywhere, and come to 0 behind their end. What is more than half of them ahead is behind.
[[nodiscard]] constexpr std::uint64_t numbers_ahead(std::uint64_t number, std::uint64_t current) noexcept {
    return (number - current) & kRequestNumberMask;
}

// How far a slot's number may jump: cancelled requests that never arrived leave gaps.
constexpr std::uint64_t kMaxRequestJump = std::uint64_t{kSlotsPerSession} * 4096;

[[nodiscard]] constexpr RequestVerdict judge_request(ServerSlotState state, std::uint64_t current, const Header& header,
                                                     std::size_t payload_bytes) noexcept {
    const std::uint64_t ahead = numbers_ahead(header.request_number, current);
    if (ahead > kRequestNumberMask / 2) {
        return RequestVerdict::Stale;
    }
    if (ahead == 0) {
        switch (state) {
            case ServerSlotState::Idle:
                return RequestVerdict::Stale;
            case ServerSlotState::Receiving:
                return RequestVerdict::WrongSize;  // that one has several packets
            case ServerSlotState::Executing:
                return RequestVerdict::Busy;
            case ServerSlotState::Answered:
                return RequestVerdict::Resend;
        }
    }
    if (ahead > kMaxRequestJump) {
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

// A packet of a request that has several.
enum class PacketVerdict : std::uint8_t {
    Begin,      // the first to arrive of the slot's next request
    Part,       // of the request that is arriving
    Known,      // of one that arrived whole and is answered, or being
    Busy,       // of the next request, while the handler is at work on the last
    Stale,      // older than the current one
    Future,     // further ahead than a client can have come by cancelling
    WrongSize,  // not of the message that the packets before it were of, or longer than any may be
};

[[nodiscard]] inline PacketVerdict judge_request_packet(const ServerSlot& slot, const Header& header,
                                                        std::uint32_t packet_bytes,
                                                        std::uint32_t message_bytes_max) noexcept {
    const std::uint64_t ahead = numbers_ahead(header.request_number, slot.request_number);
    if (ahead > kRequestNumberMask / 2) {
        return PacketVerdict::Stale;
    }
    if (header.message_bytes > message_bytes_max) {
        return PacketVerdict::WrongSize;
    }
    if (ahead == 0) {
        if (slot.state == ServerSlotState::Idle) {
            return PacketVerdict::Stale;
        }
        if (slot.request_type != header.request_type ||
            slot.request_packets != packets_of(header.message_bytes, packet_bytes) ||
            (slot.transfer != nullptr && slot.transfer->request.bytes != header.message_bytes)) {
            return PacketVerdict::WrongSize;
        }
        return slot.state == ServerSlotState::Receiving ? PacketVerdict::Part : PacketVerdict::Known;
    }
    if (ahead > kMaxRequestJump) {
        return PacketVerdict::Future;
    }
    return slot.state == ServerSlotState::Executing ? PacketVerdict::Busy : PacketVerdict::Begin;
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
