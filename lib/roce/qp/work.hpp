// Work requests and completions, as users of verbs post and poll them (IBTA vol. 1, 10.7, 11.4).
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/types.hpp"
#include "lib/roce/qp/limits.hpp"
#include "lib/roce/qp/rights.hpp"
#include "lib/roce/qp/work_traits.hpp"

namespace cairn::roce {

// A piece of registered memory: [address, address + bytes) of the region that has the key.
struct Sge {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    Lkey lkey{};
};

// The effect of a FLUSH on memory that was written before it through the same queue pair. Its answer comes after the
// effect.
struct FlushRange {
    bool global = true;       // the memory is made visible to all
    bool persistent = false;  // it is made safe from power failures; at least one of the two is asked for
    bool whole = false;       // all memory that the key reaches, not a range of it
    std::uint32_t bytes = 0;  // of the range from remote_address on
};

// One request to the send queue. The memory that the SGEs name is left alone until the request completes, or a later
// signalled one does. It is not written to, and not read either if the request fetches to it. Inline bytes are copied
// at once.
struct SendRequest {
    std::uint64_t wr_id = 0;
    WorkOpcode opcode = WorkOpcode::Send;
    bool signalled = true;   // success makes a completion; failure always does
    bool solicited = false;  // the receiver's completion makes an event also where only solicited ones do
    bool fence = false;      // the request starts when all READs and atomics before it are complete (10.8)
    bool is_inline = false;  // the payload is `inline_bytes`, not the bytes of the SGEs
    std::span<const Sge> sges{};
    std::span<const std::uint8_t> inline_bytes{};
    std::uint32_t immediate = 0;  // host order
    Rkey invalidate{};            // SendWithInvalidate: a key of the peer's; LocalInvalidate: one of ours
    std::uint64_t remote_address = 0;
    Rkey rkey{};
    Srqn remote_srqn{};         // XRC: the peer's receive queue, for every request that is sent
    std::uint64_t compare = 0;  // CompareSwap
    std::uint64_t swap_or_add = 0;
    WindowBinding bind{};  // BindWindow
    FlushRange flush{};    // Flush
};

struct ReceiveRequest {
    std::uint64_t wr_id = 0;
    std::span<const Sge> sges{};
};

// The result of posting. If it is not Posted, nothing changes.
enum class PostVerdict : std::uint8_t {
    Posted,
    QueueFull,
    WrongState,  // RESET takes no requests, INIT and RTR no send requests
    TooManySges,
    TooLong,    // longer than kMaxMessageBytes; a READ than max_read_bytes(); a datagram than the path MTU
    BadInline,  // the bytes are more than a slot of the queue holds, or the operation sends none
    BadOpcode,
    BadAtomic,  // not one SGE of 8 bytes; an ATOMIC WRITE may also have 8 bytes inline
    BadFlush,   // it asks neither for visibility nor for persistence
    BadSrqn,    // XRC: the request names no receive queue
    WrongSide,  // an XRC initiator receives nothing, an XRC target sends nothing
};

enum class CompletionStatus : std::uint8_t {
    Success,
    LocalLength,           // a message is longer than the receive request
    LocalProtection,       // a region does not allow an SGE
    Flushed,               // the queue pair failed before: the request was not executed, or its fate is unknown
    BadResponse,           // the peer's answer does not fit the request
    RemoteInvalidRequest,  // NAK codes of the peer
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,     // the peer is silent
    RnrRetryExceeded,  // the peer posts no receive requests
    LocalQpOperation,
    MemoryManagement,  // a window or key does not allow the operation (11.6.2)
};

class SendQueue;

// If `status` is not Success, only wr_id, status and qpn have a meaning (11.4).
struct Completion {
    std::uint64_t wr_id = 0;
    CompletionStatus status = CompletionStatus::Success;
    CompletionOpcode opcode = CompletionOpcode::Send;
    bool solicited = false;
    bool has_immediate = false;
    bool has_invalidate = false;
    bool has_grh = false;  // of a datagram: the first kGrhBytes of the memory are its IP header
    Qpn qpn{};
    std::uint32_t bytes = 0;  // of the message; of a send request: the number of bytes fetched
    std::uint32_t immediate = 0;
    Rkey invalidated{};
    Qpn source_qpn{};  // of a datagram
    Srqn srqn{};       // of a message through an XRC target: its receive queue, also if the message failed
    // Of a send request: its queue, and the position after it there. They are for users that take slots back when they
    // poll, and have a meaning until the queue pair goes to RESET or ends.
    std::uint32_t behind = 0;
    SendQueue* sends = nullptr;
};

}  // namespace cairn::roce
