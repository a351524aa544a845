// A node's part in a simulated world of datagrams: the production device, and the actions and expectations of its
// users' queue pairs.
#pragma once

#include <array>
#include <compare>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/sim/world.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::sim {

// A datagram as its sender and its receiver know it.
struct UdMessage {
    net::IpAddress from{};
    net::IpAddress to{};  // a host, or a multicast group
    Qpn source{};
    Qpn dest{};
    Qkey qkey{};
    Pkey pkey{0xffff};
    bool solicited = false;
    std::optional<std::uint32_t> immediate;
    std::vector<std::uint8_t> payload;

    friend auto operator<=>(const UdMessage&, const UdMessage&) = default;
};

using Grh = std::array<std::uint8_t, verbs::kGrhBytes>;
// Returns the frame as a datagram; nullopt if it is none.
[[nodiscard]] std::optional<UdMessage> message_of(const Frame& frame);
// Returns why the bytes are no sound datagram; nullopt if they are one.
[[nodiscard]] std::optional<roce::Drop> judge_datagram(std::span<const std::uint8_t> datagram);
// Returns the IP header that starts at `ip` in the form that receivers find in front of their message.
[[nodiscard]] Grh grh_of(const std::uint8_t* ip, bool is_v4);

// A copy of a message that came to a queue pair in this turn. At most one completion is made of it.
struct UdCopy {
    UdMessage message;
    Grh grh{};
};

struct UdPending {
    std::uint64_t wr_id = 0;
    bool signalled = true;
    bool bad = false;     // names memory that is not its user's
    bool doomed = false;  // posted in a state in which everything is flushed
    std::size_t at = 0;   // offset in memory
    UdMessage message;
};

struct UdPlace {
    std::uint64_t wr_id = 0;
    std::size_t number = 0;   // number of the place in memory
    std::uint32_t bytes = 0;  // bytes of the receive request
    bool bad = false;         // the receive request goes beyond the region
    friend bool operator==(const UdPlace&, const UdPlace&) = default;
};

// Receive requests in the order of their posting.
struct UdLine {
    std::deque<UdPlace> posted;
    std::uint64_t came = 0;  // datagrams for the line in this turn
    std::uint64_t had = 0;   // requests when the turn began
};

// Completion queues and perhaps a shared receive queue. Several queue pairs use them together.
struct UdQueues {
    std::unique_ptr<verbs::Cq> sends;
    std::unique_ptr<verbs::Cq> receives;
    std::unique_ptr<verbs::Srq> shared;
    UdLine line;  // of the shared receive queue

    [[nodiscard]] bool overrun() const { return sends->overrun() || receives->overrun(); }
};

// A user's queue pair and the state that it must have.
struct UdUser {
    UdQueues* queues = nullptr;
    std::unique_ptr<verbs::UdQp> qp;
    verbs::QpState state = verbs::QpState::Reset;
    Qkey qkey{};
    std::uint32_t receive_slots = 0;
    UdLine own;
    std::deque<UdPending> pending;  // send requests
    bool flushing = false;          // a send request failed, so the requests after it are flushed
    bool failed = false;            // it went to ERR by itself in this turn
    bool protection_due = false;    // a completion must say why it failed
    std::set<std::size_t> groups;
    std::vector<UdCopy> copies;

    [[nodiscard]] bool receives() const {
        return state != verbs::QpState::Reset && state != verbs::QpState::Init && state != verbs::QpState::Err;
    }
    [[nodiscard]] bool flushes() const { return state == verbs::QpState::Err || state == verbs::QpState::Sqe; }
    [[nodiscard]] UdLine& line() { return queues->shared ? queues->line : own; }
};

// The account of one turn.
struct UdAccount {
    using Drops = std::array<std::uint64_t, telemetry::kCounters<roce::Drop>>;
    Drops expected{};             // drops that must be counted
    Drops counted{};              // drops counted before the turn
    std::uint64_t due = 0;        // datagrams that came to a queue pair
    std::uint64_t not_ready = 0;  // of these, to a queue pair that receives nothing
    std::uint64_t taken = 0;      // receive requests that the datagrams used up
};

// A host's users and their memory: places for messages, and after them the source (the bytes to send, which never
// change). Places and source are registered. The margins around them may not be touched.
class UdHost {
public:
    static constexpr std::size_t kPlaces = 64;
    static constexpr std::size_t kSourceBytes = 16384;
    static constexpr std::size_t kMarginBytes = 8192;
    static constexpr std::size_t kBuffers = 256;
    static constexpr std::uint8_t kUntouched = 0xb7;
    static constexpr std::uint32_t kQueueSlots = 12;  // receive requests, at most

    UdHost(Node& node, std::uint32_t path_mtu_bytes, Random& random);

    // Starts the process. Everything but memory is made anew.
    void start(std::span<const net::IpAddress> peers);
    void stop();

    [[nodiscard]] std::uint8_t* at(std::size_t offset) { return memory.data() + kMarginBytes + offset; }
    [[nodiscard]] std::uint8_t* place(std::size_t number) { return at(number * place_bytes); }
    [[nodiscard]] verbs::Sge sge(std::size_t offset, std::uint32_t bytes) const { return mr->sge(offset, bytes); }
    [[nodiscard]] std::size_t source_at() const { return kPlaces * place_bytes; }
    // Returns whether the bytes of the place from `from` on are untouched.
    [[nodiscard]] bool is_untouched(std::size_t number, std::uint32_t from);
    [[nodiscard]] bool margins_untouched() const;
    void free_place(std::size_t number);
    void free_line(UdLine& line);
    [[nodiscard]] UdUser* find(Qpn qpn);

    Node& node;
    const std::size_t index;
    const std::size_t place_bytes;
    std::vector<std::uint8_t> memory;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Mr> mr;
    std::vector<std::unique_ptr<verbs::Ah>> ways;  // address handles to all hosts, then to the groups
    std::vector<std::unique_ptr<UdQueues>> queues;
    std::vector<std::unique_ptr<UdUser>> users;
    std::vector<std::size_t> free_places;

    std::uint8_t traffic_class = 0;

    UdAccount account;
    std::uint64_t arrived = 0;    // frames that the network delivered
    std::uint64_t done = 0;       // send requests that were certainly executed
    std::uint64_t not_known = 0;  // send requests that were executed or not
    Instant acts_at{};
};

}  // namespace cairn::sim
