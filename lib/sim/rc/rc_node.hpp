// One end of a simulated connection: memory, queues, a queue pair, and what its user did and expects.
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

using Datagram = std::vector<std::uint8_t>;  // BTH ... ICRC, which stays zero

// Where messages come in, and by whose rights: the queue pair's own queue, or one of the receive queues behind an XRC
// target, each with a protection domain.
struct Inbox {
    roce::Pd pd{};
    Rkey key{};
    std::unique_ptr<roce::ReceiveQueue> queue;  // nullptr: the queue pair's own
    Srqn srqn{};
    std::deque<std::uint64_t> posted;
};

// What one side expects of the other's messages, in order.
struct ExpectedReceive {
    std::size_t inbox = 0;
    roce::CompletionOpcode opcode{};
    std::vector<std::uint8_t> payload;  // of a SEND
    std::uint32_t bytes = 0;
    std::optional<std::uint32_t> immediate;
    std::optional<Rkey> invalidated;
    bool solicited = false;
};

// And of its own send requests.
struct ExpectedSend {
    std::uint64_t wr_id = 0;
    bool signalled = true;
    roce::WorkOpcode opcode{};
    std::uint64_t landing = 0;         // READ and atomics: where the answer comes
    std::vector<std::uint8_t> answer;  // and what it is
};

// A type 2B window over what the peer writes, as its owner knows it.
struct WindowOfNode {
    enum class State : std::uint8_t { Free, Binding, Bound, Ending };
    Rkey key{};
    State state = State::Free;
    bool zero_based = false;
};

// Its memory, from kBase: what it sends (never changes), what its peer writes, the words of its peer's atomics, where
// answers land, where SENDs land.
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

    // `is_target`: of XRC, of which the other side is the initiator then.
    RcNode(const roce::QpCapacity& capacity, std::uint32_t completion_slots, std::uint32_t held_slots,
           bool equal_writes, bool is_target, double link_bytes_per_s);

    // New queues and a new queue pair in RTS; its user has forgotten all, memory is as it is.
    void start_life(const roce::QpAttributes& values);
    void take(const Datagram& datagram, bool marked, Instant now);
    // Takes buffers back that are not held any more; whether the others are all there.
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
    std::deque<ExpectedSend> expected_sends;        // of our own
    std::deque<std::uint64_t> free_receives;        // slots to post again
    std::vector<Inbox> inboxes;                     // none: it receives nothing
    std::vector<Rkey> to_be_invalidated;            // regions, by the peer
    WindowOfNode window;
    std::uint64_t flushes_wanted = 0;  // by the peer, in this life
    std::uint64_t flushes_done = 0;
    std::uint32_t to_post = 0;
    std::uint32_t landing_used = 0;
    std::uint64_t next_wr_id = 0;
    Instant stalled_until{};
    Instant paused_until{};
    roce::StallWatch turns{roce::kOwnPause};
    std::multimap<std::int64_t, Datagram> in;  // on its way here, by time of arrival; equal times in order of sending

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
// A view into `datagram`, which is a packet (asserted).
[[nodiscard]] wire::Packet packet_of(const Datagram& datagram);

}  // namespace cairn::sim
