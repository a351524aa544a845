// Two queue pairs against each other over a link that loses, doubles, delays and reorders, in virtual time, from one
// seed; with a model of what memory, completions and atomics must be.
#pragma once

#include <array>
#include <deque>
#include <map>

#include "tests/support/sim/random.hpp"
#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {

// One direction of the link: what is on its way, by time of arrival; equal times in order of sending.
struct RcLink {
    std::multimap<std::int64_t, Datagram> under_way;
};

struct RcFaults {
    std::uint32_t loss_per_million = 0;
    std::uint32_t double_per_million = 0;
    Duration jitter{};
    std::uint32_t late_copy_per_million = 0;      // comes again milliseconds later
    std::uint32_t stall_per_million = 0;          // of sending: a full transmit ring
    std::uint32_t lazy_receiver_per_million = 0;  // receives posted late: RNR
};

// What one side expects of the other's messages, in order.
struct ExpectedReceive {
    CompletionOpcode opcode{};
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
    CompletionOpcode opcode{};
    std::uint64_t landing = 0;         // READ and atomics: where the answer comes
    std::vector<std::uint8_t> answer;  // and what it is
};

// One end. Its memory, from RcHost::kBase: what it sends (never changes), what its peer writes, the words of its peer's
// atomics, where answers land, where SENDs land.
class RcSide {
public:
    static constexpr std::uint64_t kSource = RcHost::kBase;
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

    explicit RcSide(const QpCapacity& capacity) : host(capacity) {}

    RcHost host;
    std::vector<std::uint8_t> shadow_target = std::vector<std::uint8_t>(kTargetBytes);
    std::array<std::uint64_t, kWordCount> shadow_words{};
    std::deque<ExpectedReceive> expected_receives;  // from the peer
    std::deque<ExpectedSend> expected_sends;        // of our own
    std::deque<std::uint64_t> free_receives;        // slots to post again
    std::deque<std::uint64_t> posted_receives;
    std::uint32_t to_post = 0;
    std::uint32_t landing_used = 0;
    std::uint64_t next_wr_id = 0;
    Instant stalled_until{};
    RcLink in;
};

class RcWorld {
public:
    explicit RcWorld(std::uint64_t seed);

    // Posts all work under faults, then heals the link and wants an end within a bound.
    void run();
    // A number that two runs of one seed share.
    [[nodiscard]] std::uint64_t history() const { return history_; }
    [[nodiscard]] std::uint64_t retransmissions() const { return retransmissions_; }
    [[nodiscard]] RcSide& side(std::size_t index) { return sides_[index]; }

private:
    void choose_faults();
    void post_some(RcSide& from, RcSide& to);
    void post_one(RcSide& from, RcSide& to);
    [[nodiscard]] SendRequest begin_request(RcSide& from, RcSide& to);
    void choose_remote(RcSide& to, SendRequest& request, std::uint32_t bytes, ExpectedSend& sent);
    void apply_to_model(RcSide& to, const SendRequest& request, std::span<const std::uint8_t> payload);
    void expect_receive(RcSide& to, const SendRequest& request, std::span<const std::uint8_t> payload);
    void post_receives(RcSide& side);
    void transmit(RcSide& from, RcSide& to);
    void deliver(RcSide& side);
    void check_receives(RcSide& side);
    void check_sends(RcSide& side);
    void check_memory(RcSide& side);
    void step();
    [[nodiscard]] bool finished() const;
    [[nodiscard]] Instant next_time();
    void note(std::uint64_t value) { history_ = (history_ ^ value) * 0x100000001b3U; }

    sim::Random random_;
    RcFaults faults_;
    RcFaults none_;
    bool healed_ = false;
    Instant now_{};
    std::uint64_t history_ = 0xcbf29ce484222325U;
    std::uint64_t retransmissions_ = 0;
    std::deque<RcSide> sides_;
};

}  // namespace cairn::roce::rc
