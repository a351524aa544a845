// What the responder thinks of a request packet: pure functions of the packet and of what is known, in the order in
// which the specification has them asked (IBTA vol. 1, 9.7.4, figure "responder: request packet validation").
#pragma once

#include <cstdint>

#include "lib/roce/qp/memory.hpp"
#include "lib/wire/packet.hpp"

namespace cairn::roce::rc {

// Where a request's PSN lies relative to the one expected (9.7.4): half of the circle behind it is old.
enum class PsnVerdict : std::uint8_t { Expected, Duplicate, Gap };
[[nodiscard]] constexpr PsnVerdict judge_psn(Psn psn, Psn expected) noexcept {
    const std::int32_t distance = psn.since(expected);
    return distance == 0 ? PsnVerdict::Expected : distance < 0 ? PsnVerdict::Duplicate : PsnVerdict::Gap;
}

// Of an expected packet: to be executed, or why not and what the answer says.
enum class RequestVerdict : std::uint8_t {
    Execute,
    NotReady,           // RNR NAK: no receive request
    InvalidRequest,     // NAK 1
    TooLong,            // NAK 1: a SEND longer than its receive request, which completes with LocalLength
    FlushFailed,        // NAK 3
    RemoteAccess,       // NAK 2
    RemoteOperational,  // NAK 3
};

// The request message under way, begun by a First packet and not ended yet.
enum class MessageKind : std::uint8_t { None, Send, Write };
struct InboundMessage {
    MessageKind kind = MessageKind::None;
    std::uint64_t done_bytes = 0;   // placed so far
    std::uint64_t total_bytes = 0;  // Write: of the RETH; Send: what the receive request holds
    std::uint64_t address = 0;      // Write: of the whole message
    Rkey rkey{};
};

// What each request operation is, by table.
struct RequestTraits {
    MessageKind kind = MessageKind::None;  // whose message the packet is part of; None: it has an answer of its own
    bool takes_receive = false;  // consumes a receive request: SENDs at their first packet, others at their last
    Rights rights{};             // that queue pair and region must grant; a FLUSH says itself
};
[[nodiscard]] const RequestTraits& request_traits(wire::Operation operation) noexcept;

// First and Only begin a message, so none may be under way; Middle and Last go on with one of their kind
// (9.7.4).
[[nodiscard]] RequestVerdict judge_sequence(const wire::OpcodeTraits& opcode, MessageKind under_way) noexcept;

[[nodiscard]] Rights rights_wanted(const wire::Packet& packet) noexcept;

// Operations that the queue pair does not allow are invalid requests (9.7.4).
[[nodiscard]] RequestVerdict judge_rights(const wire::Packet& packet, Rights granted) noexcept;

// Payload: First and Middle fill the path MTU, Last holds 1 byte at least, Only anything up to the MTU; a WRITE's
// packets add up to what its RETH says, messages are not longer than kMaxMessageBytes (9.7.4); an ATOMIC WRITE has 8.
[[nodiscard]] RequestVerdict judge_length(const wire::Packet& packet, const InboundMessage& message,
                                          std::uint32_t path_mtu_bytes) noexcept;

// A SEND not longer than the receive request that it fills. Departs: rxe answers remote operational (0x63), the
// specification's code is invalid request (0x61; 9.7.5, table of NAK codes).
[[nodiscard]] RequestVerdict judge_room(const wire::Packet& packet, const InboundMessage& message,
                                        std::uint64_t receive_bytes) noexcept;

// The remote memory that the packet touches, all of a message's at its first packet and its own part later; none at
// all for no bytes (9.7.4, C9-88). Atomics are aligned to 8 bytes or invalid. A key to invalidate must be one that may
// be. A FLUSH of what its region does not grant is an access error, as rxe has it.
[[nodiscard]] RequestVerdict judge_memory(const wire::Packet& packet, const InboundMessage& message,
                                          const MemoryTable& memory, const KeyUser& user) noexcept;

}  // namespace cairn::roce::rc
