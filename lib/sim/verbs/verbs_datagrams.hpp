// Queue pairs of datagrams on a simulated host that has connections, too. Their users send to each other and to groups,
// join, leave, end and begin anew. The queue pairs complete into the queues of the connections. Some take their receive
// requests from the shared receive queue.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/sim/verbs/verbs_host.hpp"

namespace cairn::sim {

// Counters over all hosts and processes.
struct VerbsSpeech {
    std::uint64_t posted = 0;
    std::uint64_t received = 0;
    std::uint64_t in_groups = 0;    // of these, as a member of a group
    std::uint64_t at_home = 0;      // of these, sent by another worker of the same host
    std::uint64_t shared = 0;       // received by shared receive queues
    std::uint64_t flushed = 0;      // flushed requests
    std::uint64_t other_keys = 0;   // posted to a queue pair with another Q_Key
    std::uint64_t memberships = 0;  // memberships that ended while the queue pair lived on

    friend bool operator==(const VerbsSpeech&, const VerbsSpeech&) = default;
};

// A datagram as it was posted. `to` is the place of a host in the network, or a group's number after the places.
struct VerbsDatagram {
    std::uint64_t wr_id = 0;
    bool signalled = true;
    std::size_t host = 0;  // the sender's VerbsHost
    Qpn source{};
    Qkey qkey{};
    std::size_t to = 0;
    Qpn dest{};
    bool solicited = false;
    std::uint32_t bytes = 0;  // first its number in the world, then bytes of the sender's source
    std::uint32_t from = 0;
    std::optional<std::uint32_t> immediate;
};

struct VerbsSpeaker {
    std::size_t number = 0;  // its place in memory
    Qkey qkey{};
    bool shared = false;
    std::unique_ptr<verbs::UdQp> qp;
    std::set<std::size_t> groups;
    std::deque<std::uint64_t> pending;   // its datagrams, by number
    std::deque<std::uint64_t> receives;  // receive requests in the order of posting
    std::uint64_t posted = 0;            // number of receive requests ever posted
    std::uint64_t sent = 0;
    std::set<std::uint64_t> had;  // datagrams that it received, by number
};

class VerbsDatagrams {
public:
    // Takes the completions of a host's queues. Datagrams and connections use the queues together.
    using Drain = std::function<void(VerbsHost& host)>;

    VerbsDatagrams(World& world, std::vector<std::unique_ptr<VerbsHost>>& hosts, VerbsSpeech& speech, Drain drain);

    // These are called when a process of the host has begun, and when it ends before the host does.
    void start(VerbsHost& host, bool shares);
    void stop(VerbsHost& host);
    // Lets the users of the host act.
    void act(VerbsHost& host, bool shares);
    // Posts receive requests. `lazy`: perhaps fewer than there is room for.
    void post_receives(VerbsHost& host, bool lazy);
    // Takes a completion. Returns false if the queue pair is none of these.
    [[nodiscard]] bool take(VerbsHost& host, const verbs::Completion& got);
    // Requires that a healed network delivers every datagram.
    void check_progress();
    // Ends all queue pairs.
    void wind_up();

private:
    static constexpr std::size_t kSpeakers = 2;
    static constexpr std::size_t kGroups = 2;
    static constexpr std::uint32_t kRequests = 8;  // requests of each kind
    static constexpr std::uint32_t kNumberBytes = sizeof(std::uint64_t);
    static constexpr std::uint32_t kMostBytes = verbs::kGrhBytes + 4096 + 8;  // bytes of a receive request
    static constexpr std::uint32_t kSpeakerBytes = kRequests * (kNumberBytes + kMostBytes);

    // The resources of a host's queue pairs of datagrams, apart from the resources for connections.
    struct Booth {
        AlignedMemory memory{kSpeakers * kSpeakerBytes};
        std::unique_ptr<verbs::Mr> region;
        std::vector<std::unique_ptr<verbs::Ah>> ways;  // address handles to all hosts, then to the groups
        std::vector<std::unique_ptr<VerbsSpeaker>> speakers;
    };
    // A queue pair that exists or existed.
    struct Known {
        std::size_t place = 0;
        Qpn qpn{};
        Qkey qkey{};
    };

    [[nodiscard]] Booth& booth_of(const VerbsHost& host) { return *booths_[host.node.index()]; }
    [[nodiscard]] static std::uint32_t number_at(const VerbsSpeaker& speaker, std::uint64_t request);
    [[nodiscard]] static std::uint32_t receive_at(const VerbsSpeaker& speaker, std::uint64_t request);
    [[nodiscard]] Qkey choose_key();
    void make(VerbsHost& host, std::size_t number, bool shares);
    void end(VerbsHost& host, VerbsSpeaker& speaker);
    void change_membership(VerbsHost& host, VerbsSpeaker& speaker, std::size_t group);
    void post_somewhere(VerbsHost& host, VerbsSpeaker& speaker);
    void post(VerbsHost& host, VerbsSpeaker& speaker, const Known& to);
    void send_anew(VerbsHost& host, VerbsSpeaker& speaker, const Known& to, std::uint64_t receivers);
    void on_sent(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got);
    void on_received(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got);
    [[nodiscard]] std::uint8_t* take_cell(VerbsHost& host, VerbsSpeaker& speaker, std::uint64_t wr_id);
    void on_message(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got, const std::uint8_t* cell);
    void expect(bool holds, const char* promise, const VerbsHost& host) { world_.check(holds, promise, &host.node); }

    World& world_;
    Random& random_;
    std::vector<std::unique_ptr<VerbsHost>>& hosts_;
    VerbsSpeech& speech_;
    Drain drain_;
    std::vector<std::unique_ptr<Booth>> booths_;  // by VerbsHost
    std::deque<Known> known_;                     // the latest queue pairs
    std::deque<VerbsDatagram> all_;               // all posted datagrams, by number
    Qkey common_key_;
};

}  // namespace cairn::sim
