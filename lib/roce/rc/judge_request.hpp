// Judges the request packets of a responder. Pure functions, in the order in which the specification demands (IBTA vol.
// 1, 9.7.4, figure "responder: request packet validation").
#pragma once

#include <cstdint>

#include "lib/roce/qp/memory.hpp"
#include "lib/wire/packet.hpp"

namespace cairn::roce::rc {

// The place of a PSN relative to the expected one: the half of the circle before that one is old (9.7.4).
enum class PsnVerdict : std::uint8_t { Expected, Duplicate, Gap };
[[nodiscard]] constexpr PsnVerdict judge_psn(Psn psn, Psn expected) noexcept {
    const std::int32_t distance = psn.since(expected);
    return distance == 0 ? PsnVerdict::Expected : distance < 0 ? PsnVerdict::Duplicate : PsnVerdict::Gap;
}

// The fate of a packet with the expected PSN: it is executed, or refused with the answer named here.
enum class RequestVerdict : std::uint8_t {
    Execute,
    NotReady,           // RNR NAK: no receive request
    InvalidRequest,     // NAK 1
    TooLong,            // NAK 1: a SEND longer than its receive request, which completes with LocalLength
    FlushFailed,        // NAK 3
    RemoteAccess,       // NAK 2
    RemoteOperational,  // NAK 3
};

// The message under way: its First packet has come, its Last has not.
enum class MessageKind : std::uint8_t { None, Send, Write };
struct InboundMessage {
    MessageKind kind = MessageKind::None;
    std::uint64_t done_bytes = 0;   // placed so far
    std::uint64_t total_bytes = 0;  // Write: of the RETH; Send: the size of the receive request
    std::uint64_t address = 0;      // Write: of the whole message
    Rkey rkey{};
};

// The demands of an operation on the responder: a row of a table.
struct RequestTraits {
    MessageKind kind =
        MessageKind::None;       // of the message that the packet is part of; None: it has an answer of its own
    bool takes_receive = false;  // takes a receive request: a SEND with its first packet, a WRITE with its last
    Rights rights{};             // rights that queue pair and region must grant; a FLUSH names its own
};
[[nodiscard]] const RequestTraits& request_traits(wire::Operation operation) noexcept;

// Judges the sequence. A First or Only packet comes while no message is under way, a Middle or Last packet within a
// message of its kind (9.7.4).
[[nodiscard]] RequestVerdict judge_sequence(const wire::OpcodeTraits& opcode, MessageKind under_way) noexcept;

[[nodiscard]] Rights rights_wanted(const wire::Packet& packet) noexcept;

// Refuses an operation that the queue pair does not grant as an invalid request (9.7.4).
[[nodiscard]] RequestVerdict judge_rights(const wire::Packet& packet, Rights granted) noexcept;

// Judges the length. The payload of First and Middle packets fills the path MTU. The payload of Last is 1 byte at
// least, of Only anything up to the MTU. The packets of a WRITE add up to the length in its RETH. A message has at most
// kMaxMessageBytes (9.7.4), an ATOMIC WRITE 8.
[[nodiscard]] RequestVerdict judge_length(const wire::Packet& packet, const InboundMessage& message,
                                          std::uint32_t path_mtu_bytes) noexcept;

// Judges that a SEND is not longer than its receive request. It is refused as invalid request (0x61), as the
// specification demands (9.7.5, table of NAK codes). Linux rxe answers remote operational (0x63).
[[nodiscard]] RequestVerdict judge_room(const wire::Packet& packet, const InboundMessage& message,
                                        std::uint64_t receive_bytes) noexcept;

// Judges that the packet may touch the remote memory that it names (9.7.4, C9-88). A First packet needs all of its
// message's, a later one its own part, one without bytes none. An atomic that is not aligned to 8 bytes is invalid. A
// key to be invalidated must allow that. A FLUSH that its region does not grant is an access error, as in Linux rxe.
// `place` becomes the destination of a WRITE's payload, if it has any.
[[nodiscard]] RequestVerdict judge_memory(const wire::Packet& packet, const InboundMessage& message,
                                          const MemoryTable& memory, const KeyUser& user,
                                          std::uint8_t*& place) noexcept;

}  // namespace cairn::roce::rc
