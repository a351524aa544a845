// Pure verdicts on packets. A judge reads state and changes nothing; the parts of client and server act on its verdict.
#pragma once

#include <cstdint>

#include "rpc/erpc/header.hpp"
#include "rpc/erpc/slots.hpp"

namespace cairn::erpc {

enum class RequestVerdict : std::uint8_t {
    Execute,    // the next request of the slot
    Resend,     // a copy of the current request, which is answered
    Forgotten,  // a copy of the current request, whose answer was given up, or which was declined
    Busy,       // a copy of the current request or the next one, while the handler is at work
    Stale,      // a request older than the current one
    Future,     // a request more than kMaxRequestJump ahead; the client must confirm its number
    WrongSize,  // not a whole message in one packet
};

// Returns how far `number` is ahead of `current`. Request numbers begin anywhere and wrap to 0. A distance of more than
// half their range means that `number` is before `current`.
[[nodiscard]] constexpr std::uint64_t numbers_ahead(std::uint64_t number, std::uint64_t current) noexcept {
    return (number - current) & kRequestNumberMask;
}

// How far a slot's number may jump without confirmation. Cancelled requests that never arrived leave gaps.
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
            case ServerSlotState::GivenUp:
                return RequestVerdict::WrongSize;  // the current request has several packets
            case ServerSlotState::Executing:
                return RequestVerdict::Busy;
            case ServerSlotState::Answered:
                return RequestVerdict::Resend;
            case ServerSlotState::Forgotten:
            case ServerSlotState::Declined:
                return RequestVerdict::Forgotten;
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

// The verdict on a packet of a request with several packets.
enum class PacketVerdict : std::uint8_t {
    Begin,      // the first packet to arrive of the slot's next request
    Part,       // part of the request that is arriving
    Known,      // part of a request that arrived whole; it is answered, or its handler is at work
    GivenUp,    // part of a request that was given up half-received
    Early,      // the first packet to arrive of the next request, too far from its beginning to be held
    Busy,       // part of the next request, while the handler is at work on the current one
    Stale,      // part of a request older than the current one
    Future,     // part of a request more than kMaxRequestJump ahead; the client must confirm its number
    TooLong,    // part of a new request that is longer than the server takes
    WrongSize,  // contradicts the packets that came before it
};

// Returns the packet's index in its request.
[[nodiscard]] inline std::uint32_t index_of(const ServerSlot& slot, const Header& header) noexcept {
    if (slot.request_number != header.request_number) {
        return header.packet_number;  // the request begins
    }
    return resolve_number(header.packet_number,
                          slot.transfer != nullptr ? slot.transfer->received.next() : slot.request_packets - 1);
}

// The rules by which messages are cut and held in a session.
struct PacketRules {
    std::uint32_t packet_bytes;
    std::uint32_t message_bytes_max;
    bool selective;  // packets that arrive early are held
};

[[nodiscard]] inline PacketVerdict judge_request_packet(const ServerSlot& slot, const Header& header,
                                                        std::size_t payload_bytes, const PacketRules& rules) noexcept {
    const std::uint64_t ahead = numbers_ahead(header.request_number, slot.request_number);
    if (ahead > kRequestNumberMask / 2) {
        return PacketVerdict::Stale;
    }
    const bool current = ahead == 0;
    if (current && slot.state == ServerSlotState::GivenUp) {
        return PacketVerdict::GivenUp;
    }
    const std::uint32_t index = index_of(slot, header);
    const std::uint32_t packets = packets_of(header.message_bytes, rules.packet_bytes);
    if (header.message_bytes > rules.message_bytes_max) {
        return current || ahead > kMaxRequestJump ? PacketVerdict::WrongSize : PacketVerdict::TooLong;
    }
    if (index >= packets || payload_bytes != bytes_of_packet(header.message_bytes, rules.packet_bytes, index)) {
        return PacketVerdict::WrongSize;
    }
    if (current) {
        if (slot.state == ServerSlotState::Idle) {
            return PacketVerdict::Stale;
        }
        if (slot.request_type != header.request_type || slot.request_packets != packets ||
            (slot.transfer != nullptr && slot.transfer->request.bytes != header.message_bytes)) {
            return PacketVerdict::WrongSize;
        }
        return slot.state == ServerSlotState::Receiving ? PacketVerdict::Part : PacketVerdict::Known;
    }
    if (ahead > kMaxRequestJump) {
        return PacketVerdict::Future;
    }
    if (slot.state == ServerSlotState::Executing) {
        return PacketVerdict::Busy;
    }
    return index < (rules.selective ? kWindowPackets : 1U) ? PacketVerdict::Begin : PacketVerdict::Early;
}

enum class ResponseVerdict : std::uint8_t { Take, Stale, WrongSize };

[[nodiscard]] inline ResponseVerdict judge_response(const ClientSlot& slot, const Header& header,
                                                    std::size_t payload_bytes) noexcept {
    if (slot.call == kNone || !slot.may_be_known() || header.request_number != slot.request_number) {
        return ResponseVerdict::Stale;
    }
    if (header.packet_number != 0 || header.message_bytes != payload_bytes) {
        return ResponseVerdict::WrongSize;
    }
    return ResponseVerdict::Take;
}

// Returns the packet's index in the response. Returns kNone if the packet contradicts what is known of the response.
[[nodiscard]] inline std::uint32_t judge_response_packet(const ClientSlot& slot, const Header& header,
                                                         std::size_t payload_bytes,
                                                         std::uint32_t packet_bytes) noexcept {
    const ClientTransfer* const transfer = slot.transfer;
    const std::uint32_t requests = transfer != nullptr ? transfer->request_packets : 1;
    const std::uint32_t number =
        resolve_number(header.packet_number, transfer != nullptr ? transfer->answered.next() : 0);
    const std::uint32_t asked = transfer != nullptr ? transfer->sent_most : 1;
    if (number + 1 < requests || number >= asked) {
        return kNone;
    }
    const std::uint32_t index = number + 1 - requests;
    const bool other =
        transfer != nullptr && transfer->response_packets != 0 && transfer->response_bytes != header.message_bytes;
    if (other || index >= packets_of(header.message_bytes, packet_bytes) ||
        payload_bytes != bytes_of_packet(header.message_bytes, packet_bytes, index)) {
        return kNone;
    }
    return index;
}

}  // namespace cairn::erpc
