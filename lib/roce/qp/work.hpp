// Work requests and completions as users of verbs know them (IBTA vol. 1, 10.7, 11.4).
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/types.hpp"
#include "lib/roce/qp/limits.hpp"
#include "lib/roce/qp/rights.hpp"

namespace cairn::roce {

// A piece of registered memory: [address, address + bytes) of the region that has the key.
struct Sge {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    Lkey lkey{};
};

enum class WorkOpcode : std::uint8_t {
    Send,
    SendWithImmediate,
    SendWithInvalidate,
    RdmaWrite,
    RdmaWriteWithImmediate,
    RdmaRead,
    CompareSwap,
    FetchAdd,
    BindWindow,
    LocalInvalidate,
    AtomicWrite,
    Flush,
    Count,
};

// Done here, nothing is sent: in its turn, a LocalInvalidate when all before it is complete (10.6.5.1, 10.8.3).
[[nodiscard]] constexpr bool is_local(WorkOpcode opcode) noexcept {
    return opcode == WorkOpcode::BindWindow || opcode == WorkOpcode::LocalInvalidate;
}
// What brings data.
[[nodiscard]] constexpr bool is_read_or_atomic(WorkOpcode opcode) noexcept {
    return opcode == WorkOpcode::RdmaRead || opcode == WorkOpcode::CompareSwap || opcode == WorkOpcode::FetchAdd;
}
// What unreliable connections have, too.
[[nodiscard]] constexpr bool is_unreliable(WorkOpcode opcode) noexcept {
    return opcode == WorkOpcode::Send || opcode == WorkOpcode::SendWithImmediate || opcode == WorkOpcode::RdmaWrite ||
           opcode == WorkOpcode::RdmaWriteWithImmediate || is_local(opcode);
}
// Each has an answer of its own, of those outstanding there are at most max_rd_atomic; all else is acknowledged.
[[nodiscard]] constexpr bool has_own_answer(WorkOpcode opcode) noexcept {
    return is_read_or_atomic(opcode) || opcode == WorkOpcode::AtomicWrite || opcode == WorkOpcode::Flush;
}
[[nodiscard]] constexpr bool is_atomic(WorkOpcode opcode) noexcept {
    return opcode == WorkOpcode::CompareSwap || opcode == WorkOpcode::FetchAdd;
}

// What a FLUSH does to memory written before it through the same queue pair: its answer comes when that is done.
struct FlushRange {
    bool global = true;       // seen by all
    bool persistent = false;  // safe from power failures; one of the two at least
    bool whole = false;       // all that the key reaches, not a range of it
    std::uint32_t bytes = 0;  // from remote_address on
};

// One request to the send queue. What the SGEs name stays in place and unchanged (READ, atomics: unread) until its
// completion, or that of a later signalled request; inline bytes are taken at once.
struct SendRequest {
    std::uint64_t wr_id = 0;
    WorkOpcode opcode = WorkOpcode::Send;
    bool signalled = true;   // a successful one makes a completion; failures always do
    bool solicited = false;  // the receiver's completion wakes even who waits for solicited ones only
    bool fence = false;      // starts when all READs and atomics before it are complete (10.8)
    bool is_inline = false;  // the payload is `inline_bytes`, not the SGEs'
    std::span<const Sge> sges{};
    std::span<const std::uint8_t> inline_bytes{};
    std::uint32_t immediate = 0;  // host order
    Rkey invalidate{};            // SendWithInvalidate: the peer's key to end; LocalInvalidate: our own
    std::uint64_t remote_address = 0;
    Rkey rkey{};
    Srqn remote_srqn{};         // XRC, every request that is sent: the receive queue there
    std::uint64_t compare = 0;  // CompareSwap
    std::uint64_t swap_or_add = 0;
    WindowBinding bind{};  // BindWindow
    FlushRange flush{};    // Flush
};

struct ReceiveRequest {
    std::uint64_t wr_id = 0;
    std::span<const Sge> sges{};
};

// What posting says; anything but Posted left no trace.
enum class PostVerdict : std::uint8_t {
    Posted,
    QueueFull,
    WrongState,  // RESET; a send request also INIT and RTR
    TooManySges,
    TooLong,    // message above kMaxMessageBytes
    BadInline,  // longer than the queue's slots, or with an operation that sends none
    BadOpcode,
    BadAtomic,  // one SGE of 8 bytes exactly; of an ATOMIC WRITE also 8 bytes inline
    BadFlush,   // for nothing
    BadSrqn,    // XRC: none is named
    WrongSide,  // an XRC initiator receives nothing, an XRC target sends nothing
};

enum class CompletionStatus : std::uint8_t {
    Success,
    LocalLength,           // a message longer than the receive request
    LocalProtection,       // an SGE that its region does not allow
    Flushed,               // never executed, or not known to be: the queue pair is in the error state
    BadResponse,           // the peer answered what was not asked
    RemoteInvalidRequest,  // NAK codes of the peer
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,     // the peer is silent
    RnrRetryExceeded,  // the peer posts no receive requests
    LocalQpOperation,
    MemoryManagement,  // a window or key that does not allow what was asked (11.6.2)
};

enum class CompletionOpcode : std::uint8_t {
    Send,
    RdmaWrite,
    RdmaRead,
    CompareSwap,
    FetchAdd,
    Receive,
    ReceiveRdmaWithImmediate,
    BindWindow,
    LocalInvalidate,
    AtomicWrite,
    Flush,
};

// Unless `status` is Success, only wr_id, status and qpn mean anything (11.4).
struct Completion {
    std::uint64_t wr_id = 0;
    CompletionStatus status = CompletionStatus::Success;
    CompletionOpcode opcode = CompletionOpcode::Send;
    bool solicited = false;
    bool has_immediate = false;
    bool has_invalidate = false;
    bool has_grh = false;  // a datagram: the first 40 bytes of the memory are its IP header, see kGrhBytes
    Qpn qpn{};
    std::uint32_t bytes = 0;  // of the message; 0 for a send request's that brought none
    std::uint32_t immediate = 0;
    Rkey invalidated{};
    Qpn source_qpn{};  // of a datagram
    Srqn srqn{};       // of a message through an XRC target, also if it failed: where the receive request was
};

}  // namespace cairn::roce
