// One end of a simulated connection: memory, queues, a queue pair, and its user's actions and expectations.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/roce/rc/queue_pair.hpp"

namespace cairn::sim {

namespace rc = roce::rc;

using Datagram = std::vector<std::uint8_t>;  // BTH ... ICRC; the ICRC stays zero

// A place where messages come in, with its rights: the queue pair's own queue, or one of the receive queues of an XRC
// target. Each has a protection domain.
struct Inbox {
    roce::Pd pd{};
    Rkey key{};
    std::unique_ptr<roce::ReceiveQueue> queue;  // nullptr: the queue pair's own
    Srqn srqn{};
    std::deque<std::uint64_t> posted;
};

// A message of the peer that this side expects. Messages come in order.
struct ExpectedReceive {
    std::size_t inbox = 0;
    roce::CompletionOpcode opcode{};
    std::vector<std::uint8_t> payload;  // of a SEND
    std::uint32_t bytes = 0;
    std::optional<std::uint32_t> immediate;
    std::optional<Rkey> invalidated;
    bool solicited = false;
};

// A send request of this side and its required result.
struct ExpectedSend {
    std::uint64_t wr_id = 0;
    bool signalled = true;
    roce::WorkOpcode opcode{};
    std::uint64_t landing = 0;         // READ and atomics: the address of the answer
    std::vector<std::uint8_t> answer;  // READ and atomics: the answer's bytes
};

// A type 2B memory window over the target of the peer's WRITEs, as its owner knows it.
struct WindowOfNode {
    enum class State : std::uint8_t { Free, Binding, Bound, Ending };
    Rkey key{};
    State state = State::Free;
    bool zero_based = false;
};

// The memory of a node, from kBase. It has the source (never changes), the target of the peer's WRITEs, and the words
// of its atomics. Then come the landings of answers and of SENDs.
class RcNode {
public:
    static constexpr std::uint64_t kBase = 0x10000;
    static constexpr std::uint64_t kSource = kBase;
    static constexpr std::uint32_t kSourceBytes = 16384;
    static constexpr std::uint64_t kTarget = kSource + kSourceBytes;
    static constexpr std::uint32_t kTargetBytes = 8192;
    static constexpr std::uint64_t kWords = kTarget + kTargetBytes;
    static constexpr std::uint32_t kWordCount = 4;
    static constexpr std::uint64_t kLanding = kWords + 64;
    static constexpr std::uint32_t kLandingBytes = 16384;
    static constexpr std::uint64_t kReceives = kLanding + kLandingBytes;
    static constexpr std::uint32_t kMaxBytes = 3000;  // of a message
    static constexpr std::uint32_t kReceiveSlots = 6;
    static constexpr std::size_t kBytes = kReceives + kReceiveSlots * kMaxBytes - kBase;
    static constexpr Qpn kQpn{0x11};

    // `is_target`: this side is the XRC target, and the other side the XRC initiator.
    RcNode(const roce::QpCapacity& capacity, std::uint32_t completion_slots, std::uint32_t held_slots,
           bool equal_writes, bool is_target, double link_bytes_per_s);

    // Makes new queues and a new queue pair in RTS. The user has forgotten everything; memory stays as it is.
    void start_life(const roce::QpAttributes& values);
    void take(const Datagram& datagram, bool marked, Instant now);
    // Takes back buffers that are not held any more. Returns true if all others are there.
    [[nodiscard]] bool settle_buffers();

    [[nodiscard]] std::span<std::uint8_t> span() { return {reinterpret_cast<std::uint8_t*>(words_.data()), kBytes}; }
    [[nodiscard]] std::uint8_t* at(std::uint64_t address) { return span().data() + (address - kBase); }
    [[nodiscard]] std::vector<std::uint8_t> bytes_at(std::uint64_t address, std::size_t count) {
        return {at(address), at(address) + count};
    }
    [[nodiscard]] roce::Sge sge(std::uint64_t address, std::uint32_t bytes) const {
        return {address, bytes, Lkey{key.value}};
    }
    [[nodiscard]] Inbox& inbox_of(std::uint64_t slot) { return inboxes[slot % inboxes.size()]; }

    roce::MemoryTable memory{64, {0x0123456789abcdefU, 0xfedcba9876543210U}};
    roce::Pd pd = memory.create_pd();
    Rkey key{};
    rc::RcCounters counters;
    std::unique_ptr<roce::CompletionQueue> send_completions;
    std::unique_ptr<roce::CompletionQueue> receive_completions;
    std::unique_ptr<rc::QueuePair> qp;

    std::vector<std::uint8_t> shadow_target = std::vector<std::uint8_t>(kTargetBytes);
    std::array<std::uint64_t, kWordCount> shadow_words{};
    std::deque<ExpectedReceive> expected_receives;  // from the peer
    std::deque<ExpectedSend> expected_sends;        // of this side
    std::deque<std::uint64_t> free_receives;        // slots to post again
    std::vector<Inbox> inboxes;                     // empty: this side receives nothing
    std::vector<Rkey> to_be_invalidated;            // regions that the peer will invalidate
    WindowOfNode window;
    std::uint64_t flushes_wanted = 0;  // FLUSH requests of the peer in this life
    std::uint64_t flushes_done = 0;
    std::uint32_t to_post = 0;
    std::uint32_t landing_used = 0;
    std::uint64_t next_wr_id = 0;
    Instant stalled_until{};
    Instant paused_until{};
    roce::StallWatch turns{roce::kOwnPause};
    std::multimap<std::int64_t, Datagram> in;  // packets under way to this side, by arrival, then in order of sending

private:
    void make_queue_pair();
    static bool flush(void* owner, std::span<std::uint8_t> memory, bool persistent) noexcept;

    const roce::QpCapacity capacity_;
    const std::uint32_t completion_slots_;
    const bool equal_writes_;
    const bool is_target_;
    const double link_bytes_per_s_;
    roce::XrcTable xrc_;
    const roce::Xrcd domain_ = xrc_.create_domain();
    rc::HeldPackets held_;
    std::map<Datagram*, std::unique_ptr<Datagram>> kept_;
    std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kBytes / 8 + 1);
};

[[nodiscard]] Datagram datagram_of(const rc::OutPacket& packet);
// Returns a view into `datagram`, which is a packet (asserted).
[[nodiscard]] wire::Packet packet_of(const Datagram& datagram);

}  // namespace cairn::sim
